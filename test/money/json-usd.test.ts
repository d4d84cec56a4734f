import { expect, test } from "bun:test";
import fc from "fast-check";
import { jsonUsd, MAX_NANO_USD, nanoUsd, nanoUsdOfJson } from "../../src/money/nano-usd.ts";

const BOUND = 2 ** 23 * 1e9;
const amount = fc.oneof(
	fc.maxSafeInteger(),
	fc.integer({ min: -2_000, max: 2_000 }),
	fc.integer({ min: 1, max: 53 }).chain((bits) => fc.maxSafeNat().map((value) => value % 2 ** bits)),
	fc.integer({ min: -50, max: 50 }).map((off) => BOUND + off),
	fc.nat(1_000).map((less) => MAX_NANO_USD - less),
);

/** Nano-dollars of a JSON number's text in any notation, computed without floating point. */
function nanoOfText(text: string): bigint {
	const [, sign = "", whole = "", fraction = "", exponent = "0"] =
		/^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text) ?? [];
	const places = fraction.length - Number(exponent);
	expect(places).toBeLessThanOrEqual(9);
	return BigInt(`${sign}${whole}${fraction}`) * 10n ** BigInt(9 - places);
}

test("the JSON number equals the amount exactly", () => {
	fc.assert(
		fc.property(amount, (value) => {
			const [, text = ""] = /^\{"cost":(.*)\}$/.exec(JSON.stringify({ cost: jsonUsd(nanoUsd(value)) })) ?? [];
			expect(nanoOfText(text)).toBe(BigInt(value));
		}),
		{ numRuns: 20_000 },
	);
});

test("the JSON number is parsed back to the same amount", () => {
	fc.assert(
		fc.property(
			fc.nat(2 ** 21).chain((usd) => fc.nat(999_999_999).map((nano) => usd * 1e9 + nano)),
			(value) => {
				expect(nanoUsdOfJson(JSON.parse(JSON.stringify(jsonUsd(nanoUsd(value)))))).toBe(nanoUsd(value));
			},
		),
		{ numRuns: 5_000 },
	);
});
