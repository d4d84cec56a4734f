import { ActButton } from "../parts/form.tsx";
import { capitalize, Empty, ErrorMessage, Notice, Page } from "../parts/page.tsx";
import { fromItems, TablePanel } from "../parts/table.tsx";
import { Amount, Timestamp } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { formatCount, formatDateTime, rich, t } from "../texts.tsx";
import { operatorApi } from "./api.ts";
import { CheckState } from "./attention.tsx";

/** Labels for checks that no operator started. */
const STARTERS: ReadonlyMap<string, string> = new Map([
	["start", t("Instance start")],
	["timer", t("Schedule")],
]);

export function ReconciliationPage() {
	const runs = useResource("operator-reconciliation", operatorApi.reconciliation);
	const check = useAction(() => operatorApi.reconcile(), runs.reload);
	const last = runs.data?.runs[0];
	const reading = { error: runs.error, retry: () => void runs.reload() };
	return (
		<Page
			title={t("Reconciliation")}
			lead={t("Ledger checks run at start, on a schedule and on demand.")}
			aside={<ActButton label={t("Check now")} look="main" action={check} />}
		>
			{check.error && <ErrorMessage error={check.error} />}
			{runs.data?.greenSinceMs && (
				<Notice kind="ok">
					{t("All checks have passed since {since}.", { since: formatDateTime(runs.data.greenSinceMs) })}
				</Notice>
			)}
			{last && !last.ok && <Notice kind="warn">{t("The last run failed. See the failed checks below.")}</Notice>}
			{runs.data?.refused && (
				<Notice kind="warn">
					{rich(
						"{count} settlements ({charged} in total) arrived after their requests had been deleted and were not charged. Most of them had been charged before. The latest came from {instance} on {at}.",
						{
							count: formatCount(runs.data.refused.requests),
							charged: <Amount nanoUsd={runs.data.refused.chargedNanoUsd} />,
							instance: runs.data.refused.instance,
							at: formatDateTime(runs.data.refused.atMs),
						},
					)}
				</Notice>
			)}
			{runs.data && runs.data.lostActs.length > 0 && (
				<TablePanel
					title={t("Changes that the database lost in a failover")}
					rows={runs.data.lostActs}
					rowKey={(act) => `${act.atMs} ${act.subject}`}
					{...reading}
					columns={[
						{ label: t("Time"), lead: true, render: (act) => <Timestamp atMs={act.atMs} /> },
						{ label: t("Subject"), render: (act) => act.subject },
						{
							label: t("Result"),
							render: (act) => (act.outcome === "redone" ? t("Applied again") : t("Not restored: repeat the change")),
						},
					]}
				/>
			)}
			<TablePanel
				title={t("Last run")}
				label={t("Checks of the last run")}
				rows={runs.data ? (last?.checks ?? []) : undefined}
				rowKey={(item) => item.name}
				{...reading}
				empty={<Empty title={t("No checks yet.")}>{t("“Check now” takes a second or two.")}</Empty>}
				columns={[
					{ label: t("Check"), lead: true, render: (item) => capitalize(item.name.replaceAll("_", " ")) },
					{ label: t("Result"), render: (item) => <CheckState ok={item.ok} /> },
					{ label: t("Details"), render: (item) => item.detail },
				]}
			/>
			<TablePanel
				title={t("Runs")}
				rows={runs.data?.runs}
				{...reading}
				empty={<Empty title={t("No runs yet.")}>{t("Runs appear here.")}</Empty>}
				columns={[
					{ label: t("Time"), lead: true, render: (run) => <Timestamp atMs={run.atMs} /> },
					{ label: t("Result"), render: (run) => <CheckState ok={run.ok} /> },
					{ label: t("Started by"), render: (run) => STARTERS.get(run.by) ?? run.by },
				]}
			/>
			<JournalPanel />
		</Page>
	);
}

function JournalPanel() {
	const journals = useResource("operator-journals", operatorApi.journals);
	return (
		<TablePanel
			title={t("Journals")}
			{...fromItems(journals)}
			rowKey={({ month }) => month}
			empty={<Empty title={t("No month is closed yet.")}>{t("A month closes within hours of its end (UTC).")}</Empty>}
			columns={[
				{ label: t("Month"), lead: true, render: ({ month }) => month },
				{ label: t("Deferred revenue"), amount: ({ deferredNanoUsd }) => deferredNanoUsd },
				{ label: t("Promotional credit"), amount: ({ promotionalNanoUsd }) => promotionalNanoUsd },
				{ label: t("Closed"), render: ({ closedAtMs }) => <Timestamp atMs={closedAtMs} /> },
			]}
			act={({ month }) => (
				<a href={operatorApi.journalAddress(month)} download aria-label={t("Journal of {month} as CSV", { month })}>
					CSV
				</a>
			)}
			actLabel={t("Files")}
		/>
	);
}
