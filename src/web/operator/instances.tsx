import { formatCount } from "../format.ts";
import { Page, State } from "../parts/page.tsx";
import { Empty, Notice } from "../parts/problem.tsx";
import { fromItems, TablePanel } from "../parts/table.tsx";
import { Ago, Amount } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { rich, t } from "../texts.tsx";
import { operatorApi } from "./api.ts";

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
					{ label: t("Started"), render: (item) => <Ago atMs={item.startedAtMs} /> },
					{
						label: t("Lease ends"),
						render: ({ state, leaseUntilMs, endedAtMs }) => (
							<Ago atMs={state === "live" || state === "silent" ? leaseUntilMs : endedAtMs} />
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
