import { assert } from "../base/assert.ts";
import type { Rates } from "../catalog/model.ts";
import { type CostLine, costNanoUsd, MAX_NANO_USD, type NanoUsd, type PicoUsdPerUnit } from "../money/nano-usd.ts";

/**
 * Usage of a request in the units of a rate card. `promptTokens` includes cached tokens; `completionTokens` includes
 * reasoning tokens.
 */
export interface Quantities {
	readonly promptTokens: number;
	readonly cachedTokens: number;
	readonly completionTokens: number;
	readonly requests: number;
	readonly images: number;
	readonly audioSeconds: number;
	readonly searches: number;
}

export const NO_QUANTITIES: Quantities = {
	promptTokens: 0,
	cachedTokens: 0,
	completionTokens: 0,
	requests: 0,
	images: 0,
	audioSeconds: 0,
	searches: 0,
};

export interface BillLine extends CostLine {
	readonly name: keyof Rates;
	readonly unit: "token" | "request" | "image" | "second" | "search";
}

export function billLines(card: Rates, used: Quantities): BillLine[] {
	assert(used.cachedTokens <= used.promptTokens, "cached tokens are part of the prompt");
	return [
		{ name: "input", unit: "token", units: used.promptTokens - used.cachedTokens, rate: card.input },
		{ name: "cachedInput", unit: "token", units: used.cachedTokens, rate: card.cachedInput },
		{ name: "output", unit: "token", units: used.completionTokens, rate: card.output },
		{ name: "request", unit: "request", units: used.requests, rate: card.request },
		{ name: "image", unit: "image", units: used.images, rate: card.image },
		{ name: "audioSecond", unit: "second", units: used.audioSeconds, rate: card.audioSecond },
		{ name: "search", unit: "search", units: used.searches, rate: card.search },
	];
}

/** Price of a request's usage; undefined above MAX_NANO_USD. */
export function priceOf(card: Rates, used: Quantities): NanoUsd | undefined {
	return quickSum(card, used, used.cachedTokens, card.input) ?? costNanoUsd(billLines(card, used));
}

/**
 * Computes the price without a list of bill lines. Undefined if floating point is not exact: the caller then sums the
 * lines, which also rejects impossible quantities.
 */
function quickSum(card: Rates, used: Quantities, cachedTokens: number, input: number): NanoUsd | undefined {
	return rounded(
		tokensPico(card, input, used.promptTokens, cachedTokens, used.completionTokens) +
			used.requests * card.request +
			used.images * card.image +
			used.audioSeconds * card.audioSecond +
			used.searches * card.search,
	);
}

/** Price of the tokens in pico-dollars; NaN if more tokens are cached than the prompt contains. */
function tokensPico(
	card: Rates,
	input: number,
	promptTokens: number,
	cachedTokens: number,
	completionTokens: number,
): number {
	if (cachedTokens > promptTokens) return Number.NaN;
	return (promptTokens - cachedTokens) * input + cachedTokens * card.cachedInput + completionTokens * card.output;
}

/** Rounds pico-dollars up to whole nano-dollars; undefined if the sum is not exact. */
function rounded(sumPico: number): NanoUsd | undefined {
	return Number.isSafeInteger(sumPico) && sumPico >= 0 ? (Math.ceil(sumPico / 1000) as NanoUsd) : undefined;
}

/** Like `cappedPriceOf`, but for tokens only and without allocating an object. Cached tokens are part of the prompt. */
export function priceOfTokens(
	card: Rates,
	promptTokens: number,
	cachedTokens: number,
	completionTokens: number,
): NanoUsd {
	return (
		rounded(tokensPico(card, card.input, promptTokens, cachedTokens, completionTokens) + card.request) ??
		cappedPriceOf(card, { ...NO_QUANTITIES, promptTokens, cachedTokens, completionTokens, requests: 1 })
	);
}

/** Like `priceOf`, but returns MAX_NANO_USD if the price is higher. */
export function cappedPriceOf(card: Rates, used: Quantities): NanoUsd {
	return priceOf(card, used) ?? MAX_NANO_USD;
}

/** Like `billLines`, but prices every prompt token at the higher of the two input rates. */
export function maxCostLines(card: Rates, used: Quantities): BillLine[] {
	const dearest = Math.max(card.cachedInput, card.input) as PicoUsdPerUnit;
	return billLines({ ...card, input: dearest }, { ...used, cachedTokens: 0 });
}

/** Upper bound of a request's cost, however many prompt tokens are cached; undefined above MAX_NANO_USD. */
export function maxCost(card: Rates, used: Quantities): NanoUsd | undefined {
	const dearest = Math.max(card.input, card.cachedInput);
	return quickSum(card, used, 0, dearest) ?? costNanoUsd(maxCostLines(card, used));
}
