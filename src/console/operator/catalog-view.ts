import type { RateCard, Rates } from "../../catalog/model.ts";
import type { DeployedModel } from "../../deployments/deployed-model.ts";
import type { DeploymentsView } from "../../deployments/deployments.ts";

export type ModelView = ReturnType<typeof modelView>;

export interface RateVersion {
	readonly id: string;
	readonly version: number;
	readonly storedAtMs: number;
	readonly rates: Rates;
}

export function modelView(model: DeployedModel, deployed: DeploymentsView) {
	const replicas = deployed.replicas.filter((replica) => replica.modelId === model.id && !replica.draining);
	return {
		id: model.id,
		name: model.name,
		kind: model.kind,
		modes: [...model.modes],
		contextLength: model.contextLength,
		maxOutputTokens: model.maxOutputTokens,
		parameters: [...model.parameters],
		inputModalities: [...model.inputModalities],
		outputModalities: [...model.outputModalities],
		rates: ratesOf(model.rateCard),
		rateCard: model.rateCard.id,
		/** First day, in UTC, on which the model is no longer served. */
		retiresOn: model.retiresOn ?? null,
		status: deployed.connected(model.id) ? ("connected" as const) : ("unavailable" as const),
		replicas: { up: replicas.filter((replica) => replica.health !== "down").length, total: replicas.length },
	};
}

/** Copies the rates without the card's name. */
export function ratesOf({ input, cachedInput, output, request, image, audioSecond, search }: RateCard): Rates {
	return { input, cachedInput, output, request, image, audioSecond, search };
}
