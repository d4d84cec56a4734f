import { isoOrNull } from "../base/iso-date.ts";
import { pricingOf } from "../catalog/pricing.ts";
import type { ConsoleParts } from "../console/console-deps.ts";
import { pageOfRows } from "../console/page-query.ts";
import type { UsageDayRow } from "../console/usage/usage-rows.ts";
import { usageRows } from "../console/usage/usage-rows.ts";
import type { DeployedModel } from "../deployments/deployed-model.ts";
import { listServedCatalogs } from "../deployments/served-catalogs.ts";
import { formatUsd } from "../money/nano-usd.ts";
import type { ReplicaView } from "../upstream/replicas/replica.ts";
import type { ManagementAnswer, ManagementCall } from "./management-call.ts";
import { listOf, pageOf, required } from "./management-call.ts";

/** What was used, and what is served: all of it only read. */
export function serviceAnswers({ statements, deployments }: ConsoleParts) {
	return {
		async self({ caller }: ManagementCall): Promise<ManagementAnswer> {
			return {
				object: "management_key",
				id: caller.id,
				name: caller.name,
				scopes: caller.scopes,
				expires_at: isoOrNull(caller.expiresAtMs),
				created_at: isoOrNull(caller.createdAtMs),
			};
		},
		async listUsage(call: ManagementCall): Promise<ManagementAnswer> {
			const { shown, asked, after } = pageOf(call);
			const { account_id, key_id, model } = call.query;
			const filter = {
				from: required(call, "from"),
				to: required(call, "to"),
				accountId: account_id ?? null,
				keyId: key_id ?? null,
				model: model ?? null,
			};
			const rows = await usageRows(statements, filter, { asked, after });
			const { items, next } = pageOfRows(rows, shown, ({ cursor }) => cursor);
			return listOf(items.map(usageView), next);
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
			return listOf(
				models.map((model) => modelView(model, connected(model.id))),
				null,
			);
		},
		async listDeployments(): Promise<ManagementAnswer> {
			const { replicas } = await deployments.current();
			return listOf(replicas.map(deploymentView), null);
		},
	};
}

function usageView(row: UsageDayRow): ManagementAnswer {
	return {
		object: "usage",
		day: row.day,
		account_id: row.accountId,
		key_id: row.keyId,
		model: row.model,
		requests: row.requests,
		prompt_tokens: row.promptTokens,
		cached_tokens: row.cachedTokens,
		completion_tokens: row.completionTokens,
		reasoning_tokens: row.reasoningTokens,
		cost_usd: formatUsd(row.costNanoUsd),
	};
}

function modelView(model: DeployedModel, isConnected: boolean): ManagementAnswer {
	return {
		object: "model",
		id: model.id,
		aliases: model.aliases,
		name: model.name,
		kind: model.kind,
		modes: model.modes,
		input_modalities: model.inputModalities,
		output_modalities: model.outputModalities,
		context_length: model.contextLength,
		max_output_tokens: model.maxOutputTokens,
		supported_parameters: model.parameters,
		pricing: pricingOf([model.rateCard]),
		rate_card: model.rateCard.id,
		expiration_date: model.retiresOn ?? null,
		status: isConnected ? "connected" : "unavailable",
	};
}

/** Without its address: that is for operators' own pages. */
function deploymentView(replica: ReplicaView): ManagementAnswer {
	return {
		object: "deployment",
		id: replica.alias,
		model: replica.modelId,
		dialect: replica.dialect,
		health: replica.health,
		breaker: replica.breaker,
		in_flight: replica.inFlight,
		max_concurrency: replica.maxConcurrency,
		draining: replica.draining,
	};
}
