import { Button, Group } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { ActDialog } from "../parts/dialog.tsx";
import { TextField } from "../parts/fields.tsx";
import { useAction } from "../resource.ts";
import { t } from "../texts.tsx";

type Act = "confirm" | "reject";

/** State of the decision dialog: the chosen row and act. `onDecided` runs after the decision. */
export function useDecision<Row>(onDecided: () => void) {
	const [open, setOpen] = useState<{ row: Row; act: Act }>();
	const close = () => setOpen(undefined);
	const decided = () => {
		close();
		onDecided();
	};
	return { open, ask: (row: Row, act: Act) => setOpen({ row, act }), close, decided };
}

/** Confirm and reject buttons of a row. */
export function DecisionButtons({ onChoose }: { onChoose: (act: Act) => void }) {
	return (
		<Group gap={6} wrap="nowrap" justify="flex-end">
			<Button size="compact-xs" onClick={() => onChoose("confirm")}>
				{t("Confirm")}
			</Button>
			<Button size="compact-xs" variant="default" onClick={() => onChoose("reject")}>
				{t("Reject")}
			</Button>
		</Group>
	);
}

/** Dialog for an operator's act: `about` above, then the field for the reason. */
export function DecisionDialog(props: {
	title: string;
	about: ReactNode;
	/** Label of the button. */
	act: string;
	danger?: boolean;
	/** Without it the dialog has no field for a reason, and `run` receives an empty one. */
	reason?: { label?: string; description: string };
	run: (reason: string) => Promise<void>;
	onClose: () => void;
}) {
	const [reason, setReason] = useState("");
	const run = useAction(() => props.run(reason.trim()));
	return (
		<ActDialog onClose={props.onClose} title={props.title} action={run} act={props.act} danger={props.danger ?? false}>
			{props.about}
			{props.reason && (
				<TextField
					label={props.reason.label ?? t("Reason")}
					description={props.reason.description}
					data-autofocus
					value={reason}
					onChange={setReason}
				/>
			)}
		</ActDialog>
	);
}
