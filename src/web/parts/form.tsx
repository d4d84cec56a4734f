import { Button } from "@mantine/core";
import { type ReactNode, useContext, useEffect } from "react";
import type { ApiError } from "../http.ts";
import { t } from "../texts.tsx";
import { DialogBusy } from "./dialog.tsx";
import { Problem } from "./problem.tsx";

/** Sent by its button or by Enter, and never by the browser itself: the page stays. What failed stands above the end. */
export function Form(props: {
	className?: string;
	onSubmit: () => void;
	error?: ApiError | undefined;
	/** What stands last: the buttons. */
	end?: ReactNode;
	children: ReactNode;
}) {
	return (
		<form
			className={props.className ?? "form"}
			onSubmit={(event) => {
				event.preventDefault();
				props.onSubmit();
			}}
		>
			{props.children}
			{props.error && <Problem error={props.error} />}
			{props.end}
		</form>
	);
}

/** The end of a form in a dialog: the way back, then the act. While that runs there is no way back. */
export function DialogEnd(props: {
	onCancel: () => void;
	label: ReactNode;
	busy: boolean;
	disabled?: boolean;
	danger?: boolean;
}) {
	const { busy } = props;
	const tell = useContext(DialogBusy);
	useEffect(() => {
		tell(busy);
		return () => tell(false);
	}, [tell, busy]);
	return (
		<div className="form-end">
			<Button variant="default" disabled={busy} onClick={props.onCancel}>
				{t("Cancel")}
			</Button>
			<Button
				type="submit"
				className={props.danger ? "danger-filled" : undefined}
				disabled={props.disabled ?? false}
				loading={busy}
			>
				{props.label}
			</Button>
		</div>
	);
}
