import { isoOrNull } from "../base/iso-date.ts";
import { openRouterPricing } from "../catalog/rate-cards.ts";
import type { Parts } from "../console/console-deps.ts";
import { type Journal, journalLines, listJournals, readJournal } from "../console/statement/journal.ts";
import { exactUsd } from "../console/statement/statement-lines.ts";
import { usageRows } from "../console/usage/usage-query.ts";
import { pageFrom } from "../db/page.ts";
import type { DeployedModel } from "../deployments/deployed-model.ts";
import { listServedCatalogs } from "../deployments/deployments.ts";
import type { ReplicaView } from "../upstream/replicas/replica.ts";
import { toAnswer } from "./management-answer.ts";
import { listJson, type ManagementAnswer, type ManagementCall, queryParam, readPage } from "./management-call.ts";
import { Deployment, MANAGEMENT_ANSWERS, Model, UsageDay } from "./management-schemas.ts";

/** Read-only operations: usage and deployments. */
export function serviceAnswers({ statements, deployments }: Parts<"statements" | "deployments">) {
	return {
		async self({ caller }: ManagementCall): Promise<ManagementAnswer> {
			return toAnswer(MANAGEMENT_ANSWERS.ManagementSelf, caller, {});
		},
		async listUsage(call: ManagementCall): Promise<ManagementAnswer> {
			const { account_id, key_id, model } = call.query;
			const filter = {
				from: queryParam(call, "from"),
				to: queryParam(call, "to"),
				accountId: account_id ?? null,
				keyId: key_id ?? null,
				model: model ?? null,
			};
			const cursorOf = ({ cursor }: { cursor: string }) => cursor;
			const { items, next } = await pageFrom(readPage(call), (page) => usageRows(statements, filter, page), cursorOf);
			const days = items.map((row) => toAnswer(UsageDay, row, {}));
			return listJson(days, next);
		},
		async listJournals(): Promise<ManagementAnswer> {
			return listJson((await listJournals(statements)).map(journalView), null);
		},
		async readJournal({ id }: ManagementCall): Promise<ManagementAnswer> {
			const journal = await readJournal(statements, id);
			return { ...journalView(journal), lines: journalLines(journal) };
		},
		async readCatalog(): Promise<ManagementAnswer> {
			const gateways = await listServedCatalogs(statements);
			const [newest] = gateways;
			return {
				object: "catalog",
				digest: newest?.digest ?? null,
				in_agreement: gateways.every(({ digest }) => digest === newest?.digest),
				models: newest?.models ?? 0,
				gateways: gateways.map(({ instanceId, digest, models, atMs }) => ({
					instance_id: instanceId,
					digest,
					models,
					changed_at: isoOrNull(atMs),
				})),
			};
		},
		async listModels(): Promise<ManagementAnswer> {
			const { models, connected } = await deployments.current();
			const views = models.map((model) => modelView(model, connected(model.id)));
			return listJson(views, null);
		},
		async listDeployments(): Promise<ManagementAnswer> {
			const { replicas } = await deployments.current();
			return listJson(replicas.map(deploymentView), null);
		},
	};
}

const journalView = ({ month, deferredNanoUsd, promotionalNanoUsd, closedAtMs }: Journal) => ({
	...{ object: "journal", id: month, deferred_usd: exactUsd(deferredNanoUsd) },
	...{ promotional_usd: exactUsd(promotionalNanoUsd), closed_at: isoOrNull(closedAtMs) },
});

function modelView(model: DeployedModel, isConnected: boolean) {
	return toAnswer(Model, model, {
		supported_parameters: [...model.parameters],
		pricing: openRouterPricing([model.rateCard]),
		rate_card: model.rateCard.id,
		expiration_date: model.retiresOn ?? null,
		status: isConnected ? "connected" : "unavailable",
	});
}

/** Omits the servers' addresses, which only operators' pages show. */
const deploymentView = (replica: ReplicaView) =>
	toAnswer(Deployment, replica, { id: replica.alias, model: replica.modelId });
