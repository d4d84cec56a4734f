import { assert } from "../base/assert.ts";
import type { RateCard } from "../catalog/model.ts";
import type { CostLine, NanoUsd } from "../money/nano-usd.ts";
import { costNanoUsd, MAX_NANO_USD } from "../money/nano-usd.ts";

/** What a request used, in the units of a rate card. `prompt` includes `cached`; `completion` includes reasoning. */
export interface Quantities {
	readonly prompt: number;
	readonly cached: number;
	readonly completion: number;
	readonly requests: number;
	readonly images: number;
	readonly audioSeconds: number;
	readonly searches: number;
}

export const NO_QUANTITIES: Quantities = {
	prompt: 0,
	cached: 0,
	completion: 0,
	requests: 0,
	images: 0,
	audioSeconds: 0,
	searches: 0,
};

/** The lines of a bill, one a unit. */
export function billLines(card: RateCard, used: Quantities): CostLine[] {
	assert(used.cached <= used.prompt, "cached tokens are part of the prompt");
	return [
		{ units: used.prompt - used.cached, rate: card.input },
		{ units: used.cached, rate: card.cachedInput },
		{ units: used.completion, rate: card.output },
		{ units: used.requests, rate: card.request },
		{ units: used.images, rate: card.image },
		{ units: used.audioSeconds, rate: card.audioSecond },
		{ units: used.searches, rate: card.search },
	];
}

/** The price of what was used; undefined if it passes the largest amount that can be written down. */
export function priceOf(card: RateCard, used: Quantities): NanoUsd | undefined {
	return costNanoUsd(billLines(card, used));
}

/** As `priceOf`, for amounts that were bounded before: what passes the largest amount is cut to it. */
export function priceWithin(card: RateCard, used: Quantities): NanoUsd {
	return priceOf(card, used) ?? MAX_NANO_USD;
}

/** The most that `prompt` tokens can cost, whichever part of them comes from a cache. */
export function boundLines(card: RateCard, used: Quantities): CostLine[] {
	const dearest = card.cachedInput > card.input ? card.cachedInput : card.input;
	return billLines({ ...card, input: dearest }, { ...used, cached: 0 });
}

export function boundOf(card: RateCard, used: Quantities): NanoUsd | undefined {
	return costNanoUsd(boundLines(card, used));
}
