import { assert } from "../base/assert.ts";
import type { Rates } from "../catalog/model.ts";
import { type CostLine, costNanoUsd, MAX_NANO_USD, type NanoUsd, type PicoUsdPerUnit } from "../money/nano-usd.ts";

/**
 * Usage of a request, in the units of a rate card. `promptTokens` includes cached tokens, `completionTokens` includes
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

/** The price of a usage; undefined if it passes MAX_NANO_USD. */
export function priceOf(card: Rates, used: Quantities): NanoUsd | undefined {
	return quickSum(card, used, used.cachedTokens, card.input) ?? costNanoUsd(billLines(card, used));
}

/**
 * The fast path of each request: the sum without bill lines. Undefined if floating point cannot represent it exactly;
 * then the caller sums the lines, which also rejects impossible quantities.
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

/** NaN if more tokens are cached than there are. */
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

/** Rounds up to a whole nano-dollar; undefined unless the sum is exact. */
function rounded(sumPico: number): NanoUsd | undefined {
	return Number.isSafeInteger(sumPico) && sumPico >= 0 ? (Math.ceil(sumPico / 1000) as NanoUsd) : undefined;
}

/** As `priceWithin`, for tokens only (cached ones are part of the prompt), without allocating an object. */
export function priceOfTokens(
	card: Rates,
	promptTokens: number,
	cachedTokens: number,
	completionTokens: number,
): NanoUsd {
	return (
		rounded(tokensPico(card, card.input, promptTokens, cachedTokens, completionTokens) + card.request) ??
		priceWithin(card, { ...NO_QUANTITIES, promptTokens, cachedTokens, completionTokens, requests: 1 })
	);
}

/** As `priceOf`, for bounded amounts: cuts at MAX_NANO_USD. */
export function priceWithin(card: Rates, used: Quantities): NanoUsd {
	return priceOf(card, used) ?? MAX_NANO_USD;
}

/** As `billLines`, with every prompt token at the higher of the two input rates. */
export function maxCostLines(card: Rates, used: Quantities): BillLine[] {
	const dearest = Math.max(card.cachedInput, card.input) as PicoUsdPerUnit;
	return billLines({ ...card, input: dearest }, { ...used, cachedTokens: 0 });
}

/** The most that a request can cost, whatever part of its prompt is cached; undefined as in `priceOf`. */
export function maxCost(card: Rates, used: Quantities): NanoUsd | undefined {
	const dearest = Math.max(card.input, card.cachedInput);
	return quickSum(card, used, 0, dearest) ?? costNanoUsd(maxCostLines(card, used));
}
