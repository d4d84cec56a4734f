import { Modal, type ModalProps } from "@mantine/core";
import { createContext, useState } from "react";
import { useHeldPage } from "../held-page.ts";
import { t } from "../texts.tsx";

/** For the end of a form in it: whether the form's act runs. */
export const DialogBusy = createContext<(busy: boolean) => void>(() => undefined);

/**
 * Above the page, with a title and a cross that says what it does; shown while its element is there, unless told.
 * While an act of its form runs neither Escape nor a click beside it closes it: what is closed meanwhile would be carried
 * out all the same. Nor while it is `held`, and then the page stays, too.
 */
export function Dialog({
	held = false,
	onClose,
	...rest
}: Omit<ModalProps, "opened"> & { opened?: boolean; held?: boolean }) {
	const [busy, setBusy] = useState(false);
	useHeldPage(held);
	return (
		<DialogBusy value={setBusy}>
			<Modal
				opened
				closeButtonProps={{ "aria-label": t("Close") }}
				{...rest}
				onClose={held || busy ? () => undefined : onClose}
			/>
		</DialogBusy>
	);
}
