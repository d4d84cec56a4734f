import { api } from "../api.ts";
import { formatCount, formatDuration } from "../format.ts";
import { Page, Panel, Stat, State } from "../parts/page.tsx";
import { Empty, Reading } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Id } from "../parts/text.tsx";
import { resources, useLive, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { rich, t } from "../texts.tsx";
import { AdjustmentTable } from "./adjustment-table.tsx";
import { type OperatorSummary, operatorApi } from "./api.ts";
import { FindingTable } from "./finding-table.tsx";
import { ReplicaTable } from "./replica-table.tsx";
import { WaitingTable } from "./waiting-table.tsx";

const KEY = "operator-summary";

/** Everything that needs an operator's attention now. */
export function TodayPage() {
	const summary = useResource(KEY, operatorApi.summary);
	const live = useLive<OperatorSummary>("operator", api.liveAddress("operator", null), (news) => {
		resources.set(KEY, () => news);
	});
	const data = summary.data;
	return (
		<Page title={t("Today")} aside={<span className="small dim">{live ? t("Live") : t("Connecting…")}</span>}>
			<Reading of={summary} />
			{(data || !summary.error) && <Figures data={data} onDecided={() => void summary.reload()} />}
		</Page>
	);
}

/** Shows placeholders while `data` is undefined. */
function Figures({ data, onDecided }: { data: OperatorSummary | undefined; onDecided: () => void }) {
	return (
		<>
			<Panel>
				<div className="stats">
					<Stat label={t("Top-ups waiting")} value={data ? formatCount(data.topUpsWaiting) : "–"}>
						<Link to="/operator/top-ups">{t("verify")}</Link>
					</Stat>
					<Stat
						label={t("Instances")}
						value={data ? t("{live} live", { live: formatCount(data.instances.live) }) : "–"}
					>
						<Link to="/operator/instances">
							{data && data.instances.gone > 0
								? t("{gone} silent or dead", { gone: formatCount(data.instances.gone) })
								: t("none silent or dead")}
						</Link>
					</Stat>
					<Stat label={t("Books")} value={data ? <Books reconciliation={data.reconciliation} /> : "–"}>
						<Link to="/operator/reconciliation">
							{data?.reconciliation?.greenSinceMs
								? rich("green since {greenSince}", { greenSince: <Ago atMs={data.reconciliation.greenSinceMs} /> })
								: t("checks")}
						</Link>
					</Stat>
					<Stat label={t("Accounts")} value={data ? formatCount(data.accounts) : "–"}>
						<Link to="/operator/accounts">{t("search")}</Link>
					</Stat>
				</div>
			</Panel>
			<Panel title={t("Top-ups to verify")} flush aside={<Link to="/operator/top-ups">{t("All top-ups")}</Link>}>
				<WaitingTable rows={data?.waitingTopUps} onDecided={onDecided} />
			</Panel>
			{data && data.waitingAdjustments.length > 0 && (
				<Panel title={t("Adjustments that wait for a second operator")} flush>
					<AdjustmentTable rows={data.waitingAdjustments} onDecided={onDecided} />
				</Panel>
			)}
			{data && data.paymentFindings.length > 0 && (
				<Panel title={t("Card payments that do not agree with the books")} flush>
					<FindingTable rows={data.paymentFindings} onClosed={onDecided} />
				</Panel>
			)}
			<Panel title={t("Held too long")} flush>
				<DataTable
					label={t("Credit held too long")}
					rows={data?.heldTooLong}
					rowKey={(row) => row.requestId}
					empty={
						<Empty title={t("Nothing is held too long.")}>
							{t("Requests older than any deadline, and those of instances that died, would be here.")}
						</Empty>
					}
					columns={[
						{ label: t("Request"), lead: true, render: (row) => <Id value={row.requestId} /> },
						{
							label: t("Account"),
							render: (row) => <Link to={`/operator/accounts/${row.accountId}`}>{row.accountId}</Link>,
						},
						{ label: t("Model"), render: (row) => row.model },
						{ label: t("Instance"), render: (row) => row.instanceId },
						{ label: t("Since"), render: (row) => <Ago atMs={row.admittedAtMs} /> },
						{ label: t("Held"), amount: (row) => row.reservedNanoUsd, corner: true },
					]}
				/>
			</Panel>
			<Panel title={t("Replicas not up")} flush aside={<Link to="/operator/deployments">{t("All deployments")}</Link>}>
				<ReplicaTable rows={data?.replicasNotUp} empty={<Empty title={t("All replicas are up.")} />} withModel />
			</Panel>
			<Panel title={t("Slowest models, last 24 hours")} flush>
				<DataTable
					label={t("Slowest models")}
					rows={data?.slowestModels}
					rowKey={(row) => row.model}
					empty={<Empty title={t("No requests in the last 24 hours.")} />}
					columns={[
						{ label: t("Model"), lead: true, render: (row) => <Link to={`/models/${row.model}`}>{row.model}</Link> },
						{
							label: t("Requests"),
							right: true,
							render: (row) => <span className="num">{formatCount(row.requests)}</span>,
						},
						{
							label: t("First token"),
							right: true,
							render: (row) => <span className="num">{formatDuration(row.meanFirstTokenMs)}</span>,
						},
						{
							label: t("Mean time"),
							right: true,
							render: (row) => <span className="num">{formatDuration(row.meanMs)}</span>,
						},
					]}
				/>
			</Panel>
		</>
	);
}

function Books({ reconciliation }: { reconciliation: OperatorSummary["reconciliation"] }) {
	if (reconciliation === null) return <span className="dim">{t("not checked")}</span>;
	return <State value={reconciliation.ok ? "ok" : "failed"} label={reconciliation.ok ? t("Green") : t("Broken")} />;
}
