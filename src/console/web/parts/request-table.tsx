import type { ReactNode } from "react";
import { formatCount, formatDuration } from "../format.ts";
import { Link } from "../router.tsx";
import type { RequestRow } from "../views.ts";
import { State } from "./page.tsx";
import type { Column, DataTableProps } from "./table.tsx";
import { DataTable } from "./table.tsx";
import { Amount, Moment } from "./text.tsx";

const ENDINGS: Readonly<Record<string, string>> = { ok: "Answered", failed: "Failed", left: "Client left" };

const COLUMNS: readonly Column<RequestRow>[] = [
	{
		label: "Time",
		lead: true,
		render: (row) => (
			<Link to={`/requests/${row.id}`}>
				<Moment atMs={row.atMs} form="log" />
			</Link>
		),
	},
	{ label: "Model", render: (row) => row.model },
	{
		label: "Key",
		render: (row) => <span title={`…${row.keyLastFour}`}>{row.keyName}</span>,
	},
	{
		label: "Tokens",
		right: true,
		render: (row) => (
			<span className="num" title={`${formatCount(row.promptTokens)} in, ${formatCount(row.completionTokens)} out`}>
				{formatCount(row.promptTokens)} + {formatCount(row.completionTokens)}
			</span>
		),
	},
	{
		label: "First token",
		right: true,
		render: (row) => <span className="num">{formatDuration(row.firstTokenMs)}</span>,
	},
	{ label: "Duration", right: true, render: (row) => <span className="num">{formatDuration(row.durationMs)}</span> },
	{ label: "Ending", render: (row) => <RequestEnding row={row} /> },
	{ label: "Cost", right: true, render: (row) => <Amount nanoUsd={row.costNanoUsd} /> },
];

/** Short lists, as on the overview, leave these out. */
const LONG_ONLY = new Set(["Key", "First token"]);

export function RequestEnding({ row }: { row: Pick<RequestRow, "statusClass" | "status" | "basis" | "costNanoUsd"> }) {
	const label = row.statusClass === "failed" ? `Failed ${row.status}` : (ENDINGS[row.statusClass] ?? row.statusClass);
	return (
		<State
			value={row.statusClass}
			label={row.basis === "exact" || row.costNanoUsd === 0 ? label : `${label}, ${row.basis}`}
		/>
	);
}

/** Requests, newest first. */
export function RequestTable(
	props: Omit<DataTableProps<RequestRow>, "columns" | "rowKey" | "label"> & { empty: ReactNode; short?: boolean },
) {
	const { short, ...rest } = props;
	return (
		<DataTable
			{...rest}
			label="Requests"
			columns={short ? COLUMNS.filter((column) => !LONG_ONLY.has(column.label)) : COLUMNS}
			rowKey={(row) => row.id}
		/>
	);
}
