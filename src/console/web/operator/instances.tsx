import { formatCount } from "../format.ts";
import { Page, Panel, State } from "../parts/page.tsx";
import { Empty, Notice } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Amount } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { operatorApi } from "./api.ts";

export function InstancesPage() {
	const instances = useResource("operator-instances", operatorApi.instances);
	const lost = instances.data?.items.filter((item) => item.state === "dead" && item.heldNanoUsd > 0) ?? [];
	return (
		<Page title="Instances" lead="Each process of the service, the credit that it has drawn and what runs on it.">
			{lost.length > 0 && (
				<Notice kind="warn">
					Credit is held for {lost.map((item) => item.id).join(", ")}. Start the instance again with its data directory,
					and its journal is read; or, if the disk is gone, run <code>tollgate instance recover ID --journal-lost</code>
					.
				</Notice>
			)}
			<Panel flush>
				<DataTable
					label="Instances"
					rows={instances.data?.items}
					rowKey={(item) => `${item.id} ${item.epoch}`}
					error={instances.error}
					retry={() => void instances.reload()}
					empty={<Empty title="No instance has ever run." />}
					columns={[
						{ label: "Instance", lead: true, render: (item) => item.id },
						{ label: "Epoch", right: true, render: (item) => <span className="num">{item.epoch}</span> },
						{ label: "State", corner: true, render: (item) => <State value={item.state} /> },
						{ label: "Started", render: (item) => <Ago atMs={item.startedAtMs} /> },
						{
							label: "Lease ends",
							render: (item) =>
								item.state === "live" ? <Ago atMs={item.leaseUntilMs} /> : <Ago atMs={item.endedAtMs} />,
						},
						{
							label: "Applied",
							right: true,
							render: (item) => <span className="num">{formatCount(item.appliedSeq)}</span>,
						},
						{
							label: "Running",
							right: true,
							render: (item) => (
								<span className="num">
									{formatCount(item.running)} <span className="dim">(</span>
									<Amount nanoUsd={item.runningNanoUsd} />
									<span className="dim">)</span>
								</span>
							),
						},
						{ label: "Drawn credit", amount: (item) => item.heldNanoUsd },
					]}
				/>
			</Panel>
		</Page>
	);
}
