import { Button } from "@mantine/core";
import { formatCount, formatDateTime } from "../format.ts";
import { capital, Page, Panel, State } from "../parts/page.tsx";
import { Empty, Notice, Problem } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Amount, Moment } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { rich, t } from "../texts.tsx";
import { operatorApi } from "./api.ts";

/** Starters of a run that are not operators. */
const STARTERS = { start: t("Start of an instance"), timer: t("Timer") } as const;
const isStarter = (by: string): by is keyof typeof STARTERS => Object.hasOwn(STARTERS, by);

export function ReconciliationPage() {
	const runs = useResource("operator-reconciliation", operatorApi.reconciliation);
	const check = useAction(async () => {
		await operatorApi.reconcile();
		await runs.reload();
	});
	const last = runs.data?.runs[0];
	return (
		<Page
			title={t("Reconciliation")}
			lead={t("The invariants of the books, checked at start, on a timer, and now if you want.")}
			aside={
				<Button size="xs" loading={check.busy} onClick={() => void check.run()}>
					{t("Check now")}
				</Button>
			}
		>
			{check.error && <Problem error={check.error} />}
			{runs.data?.greenSinceMs && (
				<Notice kind="ok">
					{rich("Green since {greenSince}.", { greenSince: formatDateTime(runs.data.greenSinceMs) })}
				</Notice>
			)}
			{last && !last.ok && (
				<Notice kind="warn">{t("The last check found the books broken. Look at the lines that failed.")}</Notice>
			)}
			{runs.data?.refused && (
				<Notice kind="warn">
					{rich(
						"{count} settlements, {charged} in all, came after the requests of their time had been removed and were not charged; most of them had been when they were made. The last ones came from {instance} on {at}.",
						{
							count: formatCount(runs.data.refused.requests),
							charged: <Amount nanoUsd={runs.data.refused.chargedNanoUsd} />,
							instance: runs.data.refused.instance,
							at: formatDateTime(runs.data.refused.atMs),
						},
					)}
				</Notice>
			)}
			<Panel title={t("Last check")} flush>
				<DataTable
					label={t("Checks of the last run")}
					rows={runs.data ? (last?.checks ?? []) : undefined}
					rowKey={(item) => item.name}
					error={runs.error}
					retry={() => void runs.reload()}
					empty={<Empty title={t("The books were not checked yet.")}>{t("“Check now” takes a second or two.")}</Empty>}
					columns={[
						{ label: t("Check"), lead: true, render: (item) => capital(item.name.replaceAll("_", " ")) },
						{
							label: t("Result"),
							render: (item) => <State value={item.ok ? "ok" : "failed"} label={item.ok ? t("Holds") : t("Broken")} />,
						},
						{ label: t("Detail"), render: (item) => item.detail || <span className="dim">–</span> },
					]}
				/>
			</Panel>
			<Panel title={t("Runs")} flush>
				<DataTable
					label={t("Runs")}
					rows={runs.data?.runs}
					rowKey={(run) => run.id}
					error={runs.error}
					retry={() => void runs.reload()}
					empty={<Empty title={t("No runs yet.")}>{t("Each check will be a line here.")}</Empty>}
					columns={[
						{ label: t("Time"), lead: true, render: (run) => <Moment atMs={run.atMs} /> },
						{
							label: t("Result"),
							render: (run) => <State value={run.ok ? "ok" : "failed"} label={run.ok ? t("Green") : t("Broken")} />,
						},
						{ label: t("By"), render: (run) => (isStarter(run.by) ? STARTERS[run.by] : run.by) },
					]}
				/>
			</Panel>
		</Page>
	);
}
