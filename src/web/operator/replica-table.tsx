import type { ReactNode } from "react";
import { formatCount } from "../format.ts";
import { dialectName } from "../labels.ts";
import { State } from "../parts/page.tsx";
import { type Column, DataTable } from "../parts/table.tsx";
import { rich, t } from "../texts.tsx";
import type { ReplicaRow } from "./api.ts";

const BREAKERS: Readonly<Record<string, string>> = {
	closed: t("Closed"),
	open: t("Open: cooling down"),
	half_open: t("Half open: trying"),
};

/** Replicas of models: the sum of all gateways' load, and the worst health and breaker state that any gateway sees. */
export function ReplicaTable(props: {
	rows: readonly ReplicaRow[] | undefined;
	empty: ReactNode;
	withModel?: boolean;
}) {
	const columns: Column<ReplicaRow>[] = [
		{ label: t("Replica"), lead: true, render: (row) => row.alias },
		...(props.withModel ? [{ label: t("Model"), render: (row: ReplicaRow) => row.modelId }] : []),
		{ label: t("Address"), render: (row) => <code>{row.url}</code> },
		{ label: t("Dialect"), render: (row) => dialectName(row.dialect) },
		{ label: t("Health"), corner: true, render: (row) => <State value={row.draining ? "draining" : row.health} /> },
		{
			label: t("Breaker"),
			render: (row) => <State value={row.breaker} label={BREAKERS[row.breaker] ?? row.breaker} />,
		},
		{
			label: t("Load"),
			right: true,
			render: (row) => (
				<span className="num">
					{rich("{inFlight} of {maxConcurrency}", {
						inFlight: formatCount(row.inFlight),
						maxConcurrency: formatCount(row.maxConcurrency),
					})}
				</span>
			),
		},
	];
	return (
		<DataTable
			label={t("Replicas")}
			columns={columns}
			rows={props.rows}
			rowKey={(row) => `${row.modelId} ${row.alias}`}
			empty={props.empty}
		/>
	);
}
