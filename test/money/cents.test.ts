import { expect, test } from "bun:test";
import fc from "fast-check";
import {
	centsRoundedDown,
	centsRoundedUp,
	isWholeCents,
	MAX_NANO_USD,
	nanoUsd,
	nanoUsdOfCents,
} from "../../src/money/nano-usd.ts";

const CENT = 10_000_000n;
const amount = fc.oneof(
	fc.nat({ max: Number.MAX_SAFE_INTEGER }),
	// Tests amounts close to whole cents, up to the largest, for which a quotient of two floats would be wrong.
	fc
		.tuple(fc.nat({ max: 900_719_925 }), fc.integer({ min: -2, max: 2 }))
		.map(([cents, off]) => Math.max(0, Math.min(MAX_NANO_USD, cents * Number(CENT) + off))),
);

test("whole cents of an amount are computed exactly", () => {
	fc.assert(
		fc.property(amount, (value) => {
			const whole = BigInt(value) / CENT;
			expect(BigInt(centsRoundedDown(nanoUsd(value)))).toBe(whole);
			expect(BigInt(centsRoundedUp(nanoUsd(value)))).toBe((BigInt(value) + CENT - 1n) / CENT);
			expect(isWholeCents(nanoUsd(value))).toBe(BigInt(value) % CENT === 0n);
			expect(BigInt(nanoUsdOfCents(Number(whole)))).toBe(whole * CENT);
			expect(BigInt(nanoUsdOfCents(-Number(whole)))).toBe(-whole * CENT);
		}),
		{ numRuns: 5_000 },
	);
});

test("amounts outside the range of whole cents throw", () => {
	for (const cents of [900_719_926, -900_719_926, Number.NaN])
		expect(() => nanoUsdOfCents(cents)).toThrow("safe integers");
});
