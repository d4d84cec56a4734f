import type { ReactNode } from "react";
import type { Fence } from "../views.ts";
import { Dialog } from "./dialog.tsx";
import { DialogDone } from "./dialog-done.tsx";
import { FenceNotice } from "./fence-notice.tsx";

/** Asks with its `children`; once the change is recorded it says instead since when it holds on every instance. */
export function FencedDialog(props: {
	title: string;
	fence: Fence | undefined;
	/** What the notice says of the change. */
	done: string;
	/** What there is to say besides. */
	below?: ReactNode;
	onClose: () => void;
	children: ReactNode;
}) {
	const { title, fence, done, below, onClose, children } = props;
	return (
		<Dialog title={title} onClose={onClose}>
			{fence === undefined ? (
				children
			) : (
				<DialogDone onClose={onClose}>
					<FenceNotice fence={fence} done={done} />
					{below}
				</DialogDone>
			)}
		</Dialog>
	);
}
