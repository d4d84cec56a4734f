import type { ReactNode } from "react";
import { LEDGER_KINDS, TOP_UP_METHODS } from "../labels.ts";
import { t } from "../texts.tsx";
import type { LedgerEntry, TopUpView } from "../views.ts";
import { State } from "./page.tsx";
import type { Column } from "./table.tsx";
import { Day, Id, Moment } from "./text.tsx";

/** Column with a key's visible characters, for API keys and management keys. */
export const KEY_COLUMN: Column<{ readonly prefix: string; readonly lastFour: string }> = {
	label: t("Key"),
	render: ({ prefix, lastFour }) => (
		<code>
			{prefix}…{lastFour}
		</code>
	),
};

/** Columns of an account's ledger, on customers' and operators' pages. */
export const ledgerColumns = <Entry extends Omit<LedgerEntry, "requests">>(
	noteOf: (entry: Entry) => ReactNode = ({ note }) => note,
): readonly Column<Entry>[] => [
	{
		label: t("Description"),
		lead: true,
		render: ({ kind }) => <span className="num">{LEDGER_KINDS[kind] ?? kind}</span>,
	},
	{
		label: t("Time"),
		// Usage is summed per UTC day, so its row shows a day instead of a time.
		render: ({ kind, atMs }) => (kind === "usage" ? <Day atMs={atMs} /> : <Moment atMs={atMs} />),
	},
	{ label: t("Note"), render: noteOf },
	{ label: t("Amount"), amount: ({ amountNanoUsd }) => amountNanoUsd, sign: true, corner: true },
	{ label: t("Balance"), amount: ({ runningNanoUsd }) => runningNanoUsd },
];

type TopUp = Pick<TopUpView, "reference" | "method" | "createdAtMs" | "state" | "amountNanoUsd">;

/** Columns of an account's top-ups, on customers' and operators' pages. */
export const topUpColumns = <Row extends TopUp>(
	stateOf: (topUp: Row) => ReactNode = ({ state }) => <State value={state} />,
): readonly Column<Row>[] => [
	{
		label: t("Reference"),
		lead: true,
		render: ({ reference }) => <Id value={reference} label={t("Copy the reference")} />,
	},
	{ label: t("Method"), render: ({ method }) => TOP_UP_METHODS[method] ?? method },
	{ label: t("Created"), render: ({ createdAtMs }) => <Moment atMs={createdAtMs} /> },
	{ label: t("State"), render: stateOf },
	{ label: t("Amount"), amount: ({ amountNanoUsd }) => amountNanoUsd, corner: true },
];
