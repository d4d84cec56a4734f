import { Skeleton } from "@mantine/core";
import type { ReactNode } from "react";
import { addUsd, type NanoUsd, ZERO_USD } from "../../money/nano-usd.ts";
import type { Balance, CreditView, LedgerEntry, RequestDetail, TopUpView } from "../api.ts";
import { formatCount, rich, showLineCost, showRatePerMillion, showRatePerUnit, t } from "../texts.tsx";
import { Empty, Stat, State } from "./page.tsx";
import { type Column, DataTable } from "./table.tsx";
import { Amount, CopyableId, Day, Timestamp } from "./text.tsx";

export const TOP_UP_METHODS: Readonly<Record<TopUpView["method"], string>> = {
	transfer: t("Bank transfer"),
	card: t("Card"),
	demo: t("Demo credit"),
};

export const LEDGER_KINDS: Readonly<Record<LedgerEntry["kind"], string>> = {
	top_up: t("Top-up"),
	refund: t("Refund"),
	adjustment: t("Adjustment"),
	promotion: t("Promotional credit"),
	dispute: t("Dispute"),
	credit_note: t("Credit note"),
	usage: t("Usage"),
};

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
		render: ({ kind, atMs }) => (kind === "usage" ? <Day atMs={atMs} /> : <Timestamp atMs={atMs} />),
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
		render: ({ reference }) => <CopyableId value={reference} label={t("Copy the reference")} />,
	},
	{ label: t("Method"), render: ({ method }) => TOP_UP_METHODS[method] ?? method },
	{ label: t("Created"), render: ({ createdAtMs }) => <Timestamp atMs={createdAtMs} /> },
	{ label: t("State"), render: stateOf },
	{ label: t("Amount"), amount: ({ amountNanoUsd }) => amountNanoUsd, corner: true },
];

const LINES: Readonly<Record<RequestDetail["lines"][number]["name"], string>> = {
	input: t("Input"),
	cachedInput: t("Cached input"),
	output: t("Output"),
	request: t("Request"),
	image: t("Images"),
	audioSecond: t("Audio"),
	search: t("Searches"),
};
const UNITS: Readonly<Record<string, string>> = {
	token: t("per million tokens"),
	request: t("per request"),
	image: t("per image"),
	second: t("per second"),
	search: t("per search"),
};

export function CostLines({ lines }: Pick<RequestDetail, "lines">) {
	return (
		<DataTable
			label={t("Cost breakdown")}
			rows={lines}
			rowKey={(line) => line.name}
			empty={<Empty title={t("Nothing was charged.")} />}
			columns={[
				{ label: t("Description"), lead: true, render: (line) => LINES[line.name] },
				{ label: t("Units"), figure: (line) => formatCount(line.units) },
				{
					label: t("Rate"),
					figure: (line) => (
						<>
							{line.unit === "token" ? showRatePerMillion(line.rate) : showRatePerUnit(line.rate)}{" "}
							<span className="dim">{UNITS[line.unit] ?? line.unit}</span>
						</>
					),
				},
				{ label: t("Amount"), figure: showLineCost },
			]}
		/>
	);
}

/** Figures of a balance. `children` appear below the held amount. */
export function BalanceFigures(props: {
	balance: Balance | undefined;
	promotions: CreditView["promotions"] | undefined;
	children?: ReactNode;
}) {
	const { balance, promotions = [], children } = props;
	const [first] = promotions;
	const value = (pick: (balance: Balance) => NanoUsd) =>
		balance ? <Amount nanoUsd={pick(balance)} /> : <Skeleton height={24} width={90} mt={4} />;
	return (
		<div className="stats">
			<Stat label={t("Available")} value={value(({ availableNanoUsd }) => availableNanoUsd)}>
				{t("for new requests")}
			</Stat>
			<Stat label={t("Held")} value={value(({ heldNanoUsd }) => heldNanoUsd)} note={children} />
			<Stat label={t("Balance")} value={value(({ balanceNanoUsd }) => balanceNanoUsd)}>
				{t("available plus held")}
			</Stat>
			<Stat label={t("Total spent")} value={value(({ spentNanoUsd }) => spentNanoUsd)} />
			{first && (
				<Stat
					label={t("Promotional credit")}
					value={<Amount nanoUsd={promotions.reduce((sum, one) => addUsd(sum, one.leftNanoUsd), ZERO_USD)} />}
				>
					{first.lastDay === null
						? t("included in the balance, spent first")
						: rich("included in the balance, spent first; {amount} expires after {day}", {
								amount: <Amount nanoUsd={first.leftNanoUsd} />,
								day: <Day atMs={Date.parse(first.lastDay)} />,
							})}
				</Stat>
			)}
		</div>
	);
}
