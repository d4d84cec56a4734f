import { Button, Modal, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { t } from "../texts.tsx";

/** One act of an operator, with what it is about above it and, where a reason is asked for, with that. */
export function DecisionDialog(props: {
	title: string;
	about: ReactNode;
	/** What the button says. */
	act: string;
	danger?: boolean;
	/** Without it no reason is asked for, and `run` gets an empty one. */
	reason?: { label?: string; description: string };
	run: (reason: string) => Promise<void>;
	onClose: () => void;
}) {
	const [reason, setReason] = useState("");
	const run = useAction(() => props.run(reason.trim()));
	return (
		<Modal opened onClose={props.onClose} title={props.title} closeButtonProps={{ "aria-label": t("Close") }}>
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					void run.run();
				}}
			>
				{props.about}
				{props.reason && (
					<TextInput
						label={props.reason.label ?? t("Reason")}
						description={props.reason.description}
						required
						withAsterisk={false}
						data-autofocus
						value={reason}
						onChange={(event) => setReason(event.currentTarget.value)}
					/>
				)}
				{run.error && <Problem error={run.error} />}
				<div className="form-end">
					<Button variant="default" onClick={props.onClose}>
						{t("Cancel")}
					</Button>
					<Button type="submit" className={props.danger ? "danger-filled" : undefined} loading={run.busy}>
						{props.act}
					</Button>
				</div>
			</form>
		</Modal>
	);
}
