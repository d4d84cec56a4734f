import type { Model, RateCard } from "../catalog/model.ts";
import { formatRatePerMillion, formatRatePerUnit } from "../money/nano-usd.ts";
import type { Upstreams } from "../upstream/upstreams.ts";

/** Decimal strings. */
export interface RatesView {
	readonly inputUsdPerMillion: string;
	readonly cachedInputUsdPerMillion: string;
	readonly outputUsdPerMillion: string;
	readonly requestUsd: string;
	readonly imageUsd: string;
	readonly audioSecondUsd: string;
	readonly searchUsd: string;
}

export interface ModelView {
	readonly id: string;
	readonly name: string;
	readonly kind: string;
	readonly modes: string[];
	readonly contextLength: number;
	readonly maxOutputTokens: number;
	readonly parameters: string[];
	readonly inputModalities: string[];
	readonly outputModalities: string[];
	readonly rates: RatesView;
	readonly rateCard: string;
	readonly status: "connected" | "unavailable";
	readonly replicas: { readonly up: number; readonly total: number };
}

export interface RateVersion {
	readonly id: string;
	readonly version: number;
	readonly storedAtMs: number;
	readonly rates: RatesView;
}

export function modelView(model: Model, upstreams: Pick<Upstreams, "replicas" | "connected">): ModelView {
	const replicas = upstreams.replicas().filter((replica) => replica.modelId === model.id && !replica.draining);
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
		rates: ratesView(model.rateCard),
		rateCard: model.rateCard.id,
		status: upstreams.connected(model.id) ? "connected" : "unavailable",
		replicas: { up: replicas.filter((replica) => replica.health !== "down").length, total: replicas.length },
	};
}

export function ratesView(card: RateCard): RatesView {
	return {
		inputUsdPerMillion: formatRatePerMillion(card.input),
		cachedInputUsdPerMillion: formatRatePerMillion(card.cachedInput),
		outputUsdPerMillion: formatRatePerMillion(card.output),
		requestUsd: formatRatePerUnit(card.request),
		imageUsd: formatRatePerUnit(card.image),
		audioSecondUsd: formatRatePerUnit(card.audioSecond),
		searchUsd: formatRatePerUnit(card.search),
	};
}
