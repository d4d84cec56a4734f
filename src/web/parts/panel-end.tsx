import { Button } from "@mantine/core";
import type { ReactNode } from "react";

/** The end of a form on a page; other acts on the same thing stand before its own as `children`. */
export function PanelEnd(props: {
	label: ReactNode;
	busy: boolean;
	disabled?: boolean;
	/** It is what the panel is for. */
	main?: boolean;
	children?: ReactNode;
}) {
	return (
		<div className="form-end">
			{props.children}
			<Button
				type="submit"
				variant={props.main ? "filled" : "default"}
				loading={props.busy}
				disabled={props.disabled ?? false}
			>
				{props.label}
			</Button>
		</div>
	);
}
