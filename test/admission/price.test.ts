import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Quantities } from "../../src/admission/price.ts";
import { billLines, cappedPriceOf, maxCost, NO_QUANTITIES, priceOf, priceOfTokens } from "../../src/admission/price.ts";
import type { RateCard } from "../../src/catalog/model.ts";
import { MAX_NANO_USD, type PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import { sameRates } from "../support/every-rate.ts";

const RUNS = { numRuns: 3_000 };
const rate = fc
	.oneof(
		fc.nat(1_000),
		fc.nat(5_000_000),
		fc.nat(1_000_000).map((value) => value * 1_000_000),
	)
	.map((value) => value as PicoUsdPerUnit);
const card: fc.Arbitrary<RateCard> = fc.record({ id: fc.constant("m@1"), version: fc.constant(1), ...sameRates(rate) });
const count = fc.oneof(fc.nat(100), fc.nat(200_000), fc.nat(2 ** 31));
const used: fc.Arbitrary<Quantities> = fc
	.record({
		promptTokens: count,
		part: fc.double({ min: 0, max: 1, noNaN: true }),
		completionTokens: count,
		requests: fc.nat(2),
		images: count,
		audioSeconds: count,
		searches: count,
	})
	.map(({ part, ...rest }) => ({ ...rest, cachedTokens: Math.floor(rest.promptTokens * part) }));

function exactPrice(
	of: RateCard,
	{ promptTokens, cachedTokens, completionTokens, requests, images, audioSeconds, searches }: Quantities,
): bigint {
	const big = BigInt;
	const pico =
		big(promptTokens - cachedTokens) * big(of.input) +
		big(cachedTokens) * big(of.cachedInput) +
		big(completionTokens) * big(of.output) +
		big(requests) * big(of.request) +
		big(images) * big(of.image) +
		big(audioSeconds) * big(of.audioSecond) +
		big(searches) * big(of.search);
	return (pico + 999n) / 1000n;
}

describe("the price of a request", () => {
	test("is the sum over all units of the rate card, rounded up once", () => {
		fc.assert(
			fc.property(card, used, (of, quantities) => {
				const exact = exactPrice(of, quantities);
				const price = priceOf(of, quantities);
				if (exact > BigInt(MAX_NANO_USD)) {
					expect(price).toBeUndefined();
					expect(cappedPriceOf(of, quantities)).toBe(MAX_NANO_USD);
				} else expect(BigInt(price as number)).toBe(exact);
			}),
			RUNS,
		);
	});

	test("has the same amount from priceOfTokens and from cappedPriceOf", () => {
		fc.assert(
			fc.property(card, used, (of, { promptTokens, cachedTokens, completionTokens }) => {
				const quantities = { ...NO_QUANTITIES, promptTokens, cachedTokens, completionTokens, requests: 1 };
				expect(priceOfTokens(of, promptTokens, cachedTokens, completionTokens)).toBe(cappedPriceOf(of, quantities));
			}),
			RUNS,
		);
	});

	test("never exceeds the upper bound computed for at least as many tokens", () => {
		fc.assert(
			fc.property(card, used, fc.nat(1_000), fc.nat(1_000), (of, quantities, morePrompt, moreOutput) => {
				const most = {
					...quantities,
					promptTokens: quantities.promptTokens + morePrompt,
					completionTokens: quantities.completionTokens + moreOutput,
				};
				const bound = maxCost(of, { ...most, cachedTokens: 0 });
				const price = priceOf(of, quantities);
				if (bound !== undefined) expect(price as number).toBeLessThanOrEqual(bound);
			}),
			RUNS,
		);
	});

	test("throws if more tokens are cached than the prompt has", () => {
		const one = { id: "m@1", version: 1, ...sameRates(0), input: 1, cachedInput: 1, output: 1 };
		expect(() => priceOf(one as unknown as RateCard, { ...NO_QUANTITIES, promptTokens: 1, cachedTokens: 2 })).toThrow();
		expect(() => priceOfTokens(one as unknown as RateCard, 1, 2, 0)).toThrow();
	});

	test("is split into bill lines with name, unit and rate", () => {
		const of = {
			...{ id: "m@1", version: 1, input: 2, cachedInput: 3, output: 5 },
			...{ request: 7, image: 11, audioSecond: 13, search: 17 },
		} as unknown as RateCard;
		const quantities = {
			promptTokens: 119,
			cachedTokens: 19,
			completionTokens: 23,
			requests: 1,
			images: 29,
			audioSeconds: 31,
			searches: 37,
		};
		expect(billLines(of, quantities)).toEqual([
			{ name: "input", unit: "token", units: 100, rate: of.input },
			{ name: "cachedInput", unit: "token", units: 19, rate: of.cachedInput },
			{ name: "output", unit: "token", units: 23, rate: of.output },
			{ name: "request", unit: "request", units: 1, rate: of.request },
			{ name: "image", unit: "image", units: 29, rate: of.image },
			{ name: "audioSecond", unit: "second", units: 31, rate: of.audioSecond },
			{ name: "search", unit: "search", units: 37, rate: of.search },
		]);
	});
});
