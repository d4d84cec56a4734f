import { formatCount } from "../format.ts";
import { Page, Panel, State } from "../parts/page.tsx";
import { Empty, Notice } from "../parts/problem.tsx";
import { DataTable, fromItems } from "../parts/table.tsx";
import { Ago, Amount } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { rich, t } from "../texts.tsx";
import { operatorApi } from "./api.ts";

export function InstancesPage() {
	const instances = useResource("operator-instances", operatorApi.instances);
	const lost =
		instances.data?.items.filter(
			(item) => (item.state === "dead" || item.state === "silent") && item.heldNanoUsd > 0,
		) ?? [];
	return (
		<Page
			title={t("Instances")}
			lead={t("Each process of the service, the credit that it has drawn and what runs on it.")}
		>
			{lost.length > 0 && (
				<Notice kind="warn">
					{rich(
						"Credit is held for {lost}. Start the instance again with its data directory, and its journal is read; or, if the disk is gone, run {code}.",
						{
							lost: lost.map((item) => item.id).join(", "),
							code: <code>tollgate instance recover ID --journal-lost</code>,
						},
					)}
				</Notice>
			)}
			<Panel flush>
				<DataTable
					label={t("Instances")}
					{...fromItems(instances)}
					rowKey={(item) => `${item.id} ${item.epoch}`}
					empty={<Empty title={t("No instance has ever run.")} />}
					columns={[
						{ label: t("Instance"), lead: true, render: (item) => item.id },
						{ label: t("Epoch"), right: true, render: (item) => <span className="num">{item.epoch}</span> },
						{ label: t("State"), corner: true, render: (item) => <State value={item.state} /> },
						{ label: t("Started"), render: (item) => <Ago atMs={item.startedAtMs} /> },
						{
							label: t("Lease ends"),
							render: (item) =>
								item.state === "live" || item.state === "silent" ? (
									<Ago atMs={item.leaseUntilMs} />
								) : (
									<Ago atMs={item.endedAtMs} />
								),
						},
						{
							label: t("Applied"),
							right: true,
							render: (item) => <span className="num">{formatCount(item.appliedSeq)}</span>,
						},
						{
							label: t("Running"),
							right: true,
							render: (item) => (
								<span className="num">
									{formatCount(item.running)} <span className="dim">(</span>
									<Amount nanoUsd={item.runningNanoUsd} />
									<span className="dim">)</span>
								</span>
							),
						},
						{ label: t("Drawn credit"), amount: (item) => item.heldNanoUsd },
					]}
				/>
			</Panel>
		</Page>
	);
}
