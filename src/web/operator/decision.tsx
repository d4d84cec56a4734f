import { Button, Group } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { ActForm, Dialog, DialogDone } from "../parts/dialog.tsx";
import { TextField } from "../parts/fields.tsx";
import { Notice } from "../parts/page.tsx";
import type { Column } from "../parts/table.tsx";
import { useAction } from "../resource.ts";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";

interface Decision {
	readonly title: string;
	readonly about: ReactNode;
	readonly act: string;
	readonly danger?: boolean;
	readonly field?: Omit<Parameters<typeof TextField>[0], "value" | "onChange">;
	/** Carries out the decision. A returned text, such as that a second operator must confirm, is shown. */
	readonly run: (text: string) => Promise<string | undefined>;
}

/**
 * Returns a dialog for an operator's decision, and the function that opens it. `onClosed` runs after Cancel too: a
 * decision whose response was lost may have taken effect.
 */
export function useDecision<Choice>(decisionOf: (choice: Choice) => Decision, onClosed: () => void) {
	const [choice, choose] = useState<Choice>();
	const close = () => {
		choose(undefined);
		onClosed();
	};
	const dialog = choice !== undefined && <DecisionDialog {...decisionOf(choice)} onClose={close} />;
	return [dialog, choose] as const;
}

function DecisionDialog(props: Decision & { onClose: () => void }) {
	const { title, about, act, danger = false, field, onClose } = props;
	const [text, setText] = useState("");
	const [result, setResult] = useState<string>();
	const run = useAction(async () => {
		const message = await props.run(text.trim());
		if (message === undefined) onClose();
		else setResult(message);
	});
	return (
		<Dialog onClose={onClose} title={title}>
			{result === undefined ? (
				<ActForm action={run} act={act} danger={danger} onCancel={onClose}>
					{about}
					{field && <TextField data-autofocus value={text} onChange={setText} {...field} />}
				</ActForm>
			) : (
				<DialogDone onClose={onClose}>
					<Notice kind="ok">{result}</Notice>
				</DialogDone>
			)}
		</Dialog>
	);
}

export const reasonField = () => ({ label: t("Reason"), description: t("Saved in the audit log") });

export interface RowDecision<Row> {
	readonly row: Row;
	readonly isConfirm: boolean;
}

/** Confirm and reject buttons, for rows that await a decision. */
export const reviewButtons =
	<Row,>(choose: (review: RowDecision<Row>) => void, isOpen: (row: Row) => boolean = () => true) =>
	(row: Row) =>
		isOpen(row) && (
			<Group gap={6} wrap="nowrap" justify="flex-end">
				<Button size="compact-xs" onClick={() => choose({ row, isConfirm: true })}>
					{t("Confirm")}
				</Button>
				<Button size="compact-xs" variant="default" onClick={() => choose({ row, isConfirm: false })}>
					{t("Reject")}
				</Button>
			</Group>
		);

/** Column with the account of the row: its owner's mail address if known, else its id. */
export const ACCOUNT_COLUMN: Column<{ readonly accountId: string | null; readonly accountEmail?: string }> = {
	label: t("Account"),
	render: ({ accountId, accountEmail }) =>
		accountId !== null && <Link to={`/operator/accounts/${accountId}`}>{accountEmail ?? accountId}</Link>,
};
