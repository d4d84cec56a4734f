import type { ReactNode } from "react";
import type { LogRow, RequestRow } from "../api.ts";
import { keyLabel, REQUEST_STATUSES } from "../labels.ts";
import { Link } from "../router.tsx";
import { formatCount, formatDuration, t } from "../texts.tsx";
import { State } from "./page.tsx";
import { type Column, DataTable, type DataTableProps } from "./table.tsx";
import { Timestamp, TruncatedText } from "./text.tsx";

const BASES: Readonly<Record<string, string>> = { estimated: t("estimated"), recovered: t("recovered") };

const COLUMNS: readonly Column<LogRow>[] = [
	{
		label: t("Time"),
		lead: true,
		render: (row) => (
			<Link to={`/requests/${row.id}`}>
				<Timestamp atMs={row.atMs} form="log" />
			</Link>
		),
	},
	{ label: t("Model"), clip: true, render: ({ model }) => model !== null && <TruncatedText text={model} /> },
	{
		label: t("Key"),
		clip: true,
		render: (row) => (
			<TruncatedText text={row.keyName} title={keyLabel({ name: row.keyName, lastFour: row.keyLastFour })} />
		),
	},
	{
		label: t("Tokens"),
		figure: (row) =>
			row.statusClass !== "refused" && (
				<span
					title={t("{prompt} in, {completion} out", {
						prompt: formatCount(row.promptTokens),
						completion: formatCount(row.completionTokens),
					})}
				>
					{formatCount(row.promptTokens)} + {formatCount(row.completionTokens)}
				</span>
			),
	},
	{ label: t("First token"), figure: (row) => row.statusClass !== "refused" && formatDuration(row.firstTokenMs) },
	{ label: t("Duration"), figure: (row) => row.statusClass !== "refused" && formatDuration(row.durationMs) },
	{
		label: t("Status"),
		render: (row) => (row.statusClass === "refused" ? <RefusalStatus row={row} /> : <RequestEnding row={row} />),
	},
	{ label: t("Cost"), corner: true, amount: (row) => (row.statusClass === "refused" ? null : row.costNanoUsd) },
];

/** Columns that short lists, such as the overview's, do not have. */
const LONG_ONLY = new Set([t("Key"), t("First token")]);

export function RequestEnding({ row }: { row: Pick<RequestRow, "statusClass" | "status" | "basis" | "costNanoUsd"> }) {
	const label =
		row.statusClass === "failed" ? t("Failed {status}", { status: row.status }) : REQUEST_STATUSES[row.statusClass];
	return (
		<State
			value={row.statusClass}
			label={row.basis === "exact" || row.costNanoUsd === 0 ? label : `${label}, ${BASES[row.basis] ?? row.basis}`}
		/>
	);
}

export function RefusalStatus({ row }: { row: { status: number; code: string; repeats: number } }) {
	return (
		<div title={row.code}>
			<State value="refused" tone="warn" label={t("Refused {status}", { status: row.status })} />
			{row.repeats > 0 && <div className="small dim">{t("and {count} more", { count: formatCount(row.repeats) })}</div>}
		</div>
	);
}

export function RequestTable(
	props: Omit<DataTableProps<LogRow>, "columns" | "label"> & { empty: ReactNode; short?: boolean },
) {
	const { short, ...rest } = props;
	return (
		<DataTable
			{...rest}
			label={t("Requests")}
			columns={short ? COLUMNS.filter((column) => !LONG_ONLY.has(column.label)) : COLUMNS}
		/>
	);
}
