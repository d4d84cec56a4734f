import { useEffect } from "react";
import { KINDS } from "../parts/model-table.tsx";
import { Page, Panel, State } from "../parts/page.tsx";
import { Empty, Reading } from "../parts/problem.tsx";
import { useResource } from "../resource.ts";
import { t } from "../texts.tsx";
import { operatorApi } from "./api.ts";
import { ReplicaTable } from "./replica-table.tsx";

const REFRESH_MS = 3_000;

export function DeploymentsPage() {
	const deployments = useResource("operator-deployments", operatorApi.deployments);
	const { reload } = deployments;
	useEffect(() => {
		const timer = setInterval(() => void reload(), REFRESH_MS);
		return () => clearInterval(timer);
	}, [reload]);
	return (
		<Page
			title={t("Deployments")}
			lead={t("Load of all gateways together, health and breakers as the worst of them sees it, every few seconds.")}
		>
			<Reading of={deployments} height={240} />
			{deployments.data?.items.length === 0 && (
				<Panel>
					<Empty title={t("The catalogue is empty.")}>
						{t("Models and their servers are listed in the file that CONFIG names.")}
					</Empty>
				</Panel>
			)}
			{deployments.data?.items.map((deployment) => (
				<Panel
					key={deployment.modelId}
					flush
					title={
						<>
							{deployment.name} <span className="dim">{KINDS[deployment.kind] ?? deployment.kind}</span>
						</>
					}
					aside={
						<State
							value={deployment.status}
							label={deployment.status === "connected" ? t("Connected") : t("Unavailable")}
						/>
					}
				>
					<ReplicaTable rows={deployment.replicas} empty={<Empty title={t("No replica is configured.")} />} />
				</Panel>
			))}
		</Page>
	);
}
