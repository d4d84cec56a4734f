import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import type { ApiError } from "../http.ts";
import { t } from "../texts.tsx";
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

/** The end of a form in a dialog: the way back, then the act. */
export function DialogEnd(props: {
	onCancel: () => void;
	label: ReactNode;
	busy: boolean;
	disabled?: boolean;
	danger?: boolean;
	/** There is no way back while the act runs. */
	held?: boolean;
}) {
	return (
		<div className="form-end">
			<Button variant="default" disabled={props.held === true && props.busy} onClick={props.onCancel}>
				{t("Cancel")}
			</Button>
			<Button
				type="submit"
				className={props.danger ? "danger-filled" : undefined}
				disabled={props.disabled ?? false}
				loading={props.busy}
			>
				{props.label}
			</Button>
		</div>
	);
}
