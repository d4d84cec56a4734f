import { KIND_LABELS, ModelState } from "../parts/model-table.tsx";
import { Empty, LoadState, Notice, Page, Panel, State } from "../parts/page.tsx";
import { type Column, DataTable, fromItems, TablePanel } from "../parts/table.tsx";
import { Amount, RelativeTime } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { formatCount, formatDuration, rich, t } from "../texts.tsx";
import { operatorApi, type ReplicaRow } from "./api.ts";

const REFRESH_MS = 3_000;

export function DeploymentsPage() {
	const deployments = useResource("operator-deployments", operatorApi.deployments, () => REFRESH_MS);
	return (
		<Page
			title={t("Deployments")}
			lead={t(
				"Total load of all gateways, and the worst health and breaker state that any of them reports. Updated every few seconds.",
			)}
		>
			<LoadState of={deployments} height={240} />
			{deployments.data?.items.length === 0 && (
				<Panel>
					<Empty title={t("No models yet.")}>{t("List models and their servers in the file that CONFIG names.")}</Empty>
				</Panel>
			)}
			{deployments.data?.items.map((deployment) => (
				<Panel
					key={deployment.modelId}
					flush
					title={
						<>
							{deployment.name} <span className="dim">{KIND_LABELS[deployment.kind] ?? deployment.kind}</span>
						</>
					}
					aside={
						<>
							<span className="small dim">
								{t("Prompt tokens from caches: {share}", { share: cachedShare(deployment.replicas) })}
							</span>
							<ModelState model={deployment} />
						</>
					}
				>
					<DataTable
						label={t("Replicas")}
						rows={deployment.replicas}
						rowKey={({ alias }) => alias}
						empty={<Empty title={t("No replicas configured.")} />}
						columns={REPLICA_COLUMNS}
					/>
				</Panel>
			))}
		</Page>
	);
}

const BREAKERS: Readonly<Record<string, string>> = {
	closed: t("Closed"),
	open: t("Open: cooling down"),
	half_open: t("Half-open: testing"),
};

export const REPLICA_COLUMNS: readonly Column<ReplicaRow>[] = [
	{ label: t("Replica"), lead: true, render: (row) => row.alias },
	{ label: t("Address"), render: (row) => <code>{row.url}</code> },
	{ label: t("Dialect"), render: (row) => row.dialect },
	{ label: t("Health"), corner: true, render: (row) => <State value={row.draining ? "draining" : row.health} /> },
	{ label: t("Breaker"), render: (row) => <State value={row.breaker} label={BREAKERS[row.breaker] ?? row.breaker} /> },
	{
		label: t("Load"),
		figure: (row) =>
			t("{inFlight} of {maxConcurrency}", {
				inFlight: formatCount(row.inFlight),
				maxConcurrency: formatCount(row.maxConcurrency),
			}),
	},
	// Gateways of the previous version do not report the wait.
	{ label: t("Wait"), figure: (row) => formatDuration(row.waitMs ?? null) },
	{ label: t("From cache"), figure: (row) => cachedShare([row]) },
];

/** Fraction of the replicas' prompt tokens that came from their prompt caches. */
function cachedShare(rows: readonly ReplicaRow[]): string {
	let [prompt, cached] = [0, 0];
	for (const { promptTokens, cachedTokens } of rows) {
		prompt += promptTokens;
		cached += cachedTokens;
	}
	return prompt > 0 ? `${formatCount((100 * cached) / prompt)} %` : "–";
}

export function InstancesPage() {
	const instances = useResource("operator-instances", operatorApi.instances);
	const lost =
		instances.data?.items.filter(({ state, heldNanoUsd }) => ["dead", "silent"].includes(state) && heldNanoUsd > 0) ??
		[];
	return (
		<Page title={t("Instances")} lead={t("Processes of the service, with their leased credit and running requests.")}>
			{lost.length > 0 && (
				<Notice kind="warn">
					{rich(
						"Credit is leased to {lost}. Restart the instance with its data directory so that its journal is read. If the disk is lost, run {code}.",
						{
							lost: lost.map((item) => item.id).join(", "),
							code: <code>tollgate instance recover ID --journal-lost</code>,
						},
					)}
				</Notice>
			)}
			<TablePanel
				title={t("Instances")}
				{...fromItems(instances)}
				rowKey={(item) => `${item.id} ${item.epoch}`}
				empty={<Empty title={t("No instances yet.")} />}
				columns={[
					{ label: t("Instance"), lead: true, render: (item) => item.id },
					{ label: t("Epoch"), figure: (item) => item.epoch },
					{ label: t("State"), corner: true, render: (item) => <State value={item.state} /> },
					{ label: t("Started"), render: (item) => <RelativeTime atMs={item.startedAtMs} /> },
					{
						label: t("Lease ends"),
						render: ({ state, leaseUntilMs, endedAtMs }) => (
							<RelativeTime atMs={state === "live" || state === "silent" ? leaseUntilMs : endedAtMs} />
						),
					},
					{ label: t("Settlements applied"), figure: (item) => formatCount(item.appliedSeq) },
					{
						label: t("Running"),
						figure: (item) => (
							<>
								{formatCount(item.running)} <span className="dim">(</span>
								<Amount nanoUsd={item.runningNanoUsd} />
								<span className="dim">)</span>
							</>
						),
					},
					{ label: t("Leased credit"), amount: (item) => item.heldNanoUsd },
				]}
			/>
		</Page>
	);
}
