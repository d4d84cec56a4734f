import { Button, Group } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { ActDialog } from "../parts/dialog.tsx";
import { TextField } from "../parts/fields.tsx";
import { useAction } from "../resource.ts";
import { t } from "../texts.tsx";

type Act = "confirm" | "reject";

/** Which row of a table an operator is about to decide, and how. `onDecided`: once he has. */
export function useDecision<Row>(onDecided: () => void) {
	const [open, setOpen] = useState<{ row: Row; act: Act }>();
	const close = () => setOpen(undefined);
	const decided = () => {
		close();
		onDecided();
	};
	return { open, ask: (row: Row, act: Act) => setOpen({ row, act }), close, decided };
}

/** The two ways, in a row of the table. */
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
