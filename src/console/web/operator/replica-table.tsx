import type { ReactNode } from "react";
import { formatCount } from "../format.ts";
import { dialectName } from "../labels.ts";
import { State } from "../parts/page.tsx";
import type { Column } from "../parts/table.tsx";
import { DataTable } from "../parts/table.tsx";
import type { ReplicaRow } from "./views.ts";

const BREAKERS: Readonly<Record<string, string>> = {
	closed: "Closed",
	open: "Open: cooling down",
	half_open: "Half open: trying",
};

/** Servers of models, with the load of all gateways and the worst that any of them sees. */
export function ReplicaTable(props: {
	rows: readonly ReplicaRow[] | undefined;
	empty: ReactNode;
	withModel?: boolean;
}) {
	const columns: Column<ReplicaRow>[] = [
		{ label: "Replica", lead: true, render: (row) => row.alias },
		...(props.withModel ? [{ label: "Model", render: (row: ReplicaRow) => row.modelId }] : []),
		{ label: "Address", render: (row) => <code>{row.url}</code> },
		{ label: "Dialect", render: (row) => dialectName(row.dialect) },
		{ label: "Health", corner: true, render: (row) => <State value={row.draining ? "draining" : row.health} /> },
		{ label: "Breaker", render: (row) => <State value={row.breaker} label={BREAKERS[row.breaker] ?? row.breaker} /> },
		{
			label: "Load",
			right: true,
			render: (row) => (
				<span className="num">
					{formatCount(row.inFlight)} of {formatCount(row.maxConcurrency)}
				</span>
			),
		},
	];
	return (
		<DataTable
			label="Replicas"
			columns={columns}
			rows={props.rows}
			rowKey={(row) => `${row.modelId} ${row.alias}`}
			skeletonRows={2}
			empty={props.empty}
		/>
	);
}
