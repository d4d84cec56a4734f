import { Button } from "@mantine/core";
import { formatDateTime } from "../format.ts";
import { capital, Page, Panel, State } from "../parts/page.tsx";
import { Empty, Notice, Problem } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Amount, Moment } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { operatorApi } from "./api.ts";

export function ReconciliationPage() {
	const runs = useResource("operator-reconciliation", operatorApi.reconciliation);
	const check = useAction(async () => {
		await operatorApi.reconcile();
		await runs.reload();
	});
	const last = runs.data?.runs[0];
	return (
		<Page
			title="Reconciliation"
			lead="The invariants of the books, checked at start, on a timer, and now if you want."
			aside={
				<Button size="xs" loading={check.busy} onClick={() => void check.run()}>
					Check now
				</Button>
			}
		>
			{check.error && <Problem error={check.error} />}
			{runs.data?.greenSinceMs && <Notice kind="ok">Green since {formatDateTime(runs.data.greenSinceMs)}.</Notice>}
			{last && !last.ok && (
				<Notice kind="warn">The last check found the books broken. Look at the lines that failed.</Notice>
			)}
			{runs.data?.refused && (
				<Notice kind="warn">
					{runs.data.refused.requests.toLocaleString("en-US")} settlements,{" "}
					<Amount nanoUsd={runs.data.refused.chargedNanoUsd} /> in all, came after the requests of their time had been
					removed and were not charged; most of them had been when they were made. The last ones came from{" "}
					{runs.data.refused.instance} on {formatDateTime(runs.data.refused.atMs)}.
				</Notice>
			)}
			<Panel title="Last check" flush>
				<DataTable
					label="Checks of the last run"
					rows={runs.data ? (last?.checks ?? []) : undefined}
					rowKey={(item) => item.name}
					error={runs.error}
					retry={() => void runs.reload()}
					empty={<Empty title="The books were not checked yet.">“Check now” takes a second or two.</Empty>}
					columns={[
						{ label: "Check", lead: true, render: (item) => capital(item.name.replaceAll("_", " ")) },
						{
							label: "Result",
							render: (item) => <State value={item.ok ? "ok" : "failed"} label={item.ok ? "Holds" : "Broken"} />,
						},
						{ label: "Detail", render: (item) => item.detail || <span className="dim">–</span> },
					]}
				/>
			</Panel>
			<Panel title="Runs" flush>
				<DataTable
					label="Runs"
					rows={runs.data?.runs}
					rowKey={(run) => run.id}
					error={runs.error}
					retry={() => void runs.reload()}
					empty={<Empty title="No runs yet.">Each check will be a line here.</Empty>}
					columns={[
						{ label: "Time", lead: true, render: (run) => <Moment atMs={run.atMs} /> },
						{
							label: "Result",
							render: (run) => <State value={run.ok ? "ok" : "failed"} label={run.ok ? "Green" : "Broken"} />,
						},
						{ label: "By", render: (run) => run.by },
					]}
				/>
			</Panel>
		</Page>
	);
}
