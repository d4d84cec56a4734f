import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { CostLine, NanoUsd, PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import {
	addUsd,
	affordableUnits,
	costNanoUsd,
	displayDifference,
	displaySum,
	formatRatePerMillion,
	formatRatePerUnit,
	formatUsd,
	MAX_NANO_USD,
	maxUsd,
	minUsd,
	nanoUsd,
	nanoUsdOfColumn,
	parseRatePerMillion,
	parseRatePerUnit,
	parseUsd,
	subUsd,
} from "../../src/money/nano-usd.ts";

const SAFE = BigInt(Number.MAX_SAFE_INTEGER);
const RUNS = { numRuns: 3_000 };

/**
 * Generates small values, values around 2^53, and values in between, so that some sums are exact doubles and some not.
 */
const whole = fc.oneof(
	fc.nat(1_000),
	fc.nat(10_000_000),
	fc.maxSafeNat(),
	fc.nat(100).map((less) => Number.MAX_SAFE_INTEGER - less),
);
const rate = whole.map((value) => value as PicoUsdPerUnit);
const lines = fc.array(fc.record({ units: whole, rate }), { maxLength: 7 });
const amount = fc.maxSafeNat().map((value) => value as NanoUsd);

const picoOf = (of: readonly CostLine[]) =>
	of.reduce((sum, { units, rate: each }) => sum + BigInt(units) * BigInt(each), 0n);

test("amounts add, subtract and compare exactly", () => {
	const [more, less] = [nanoUsd(7), nanoUsd(4)];
	expect([addUsd(more, less), displaySum(more, less), subUsd(more, less), displayDifference(more, less)]).toEqual([
		nanoUsd(11),
		nanoUsd(11),
		nanoUsd(3),
		nanoUsd(3),
	]);
	expect([minUsd(more, less), minUsd(less, more), maxUsd(more, less), maxUsd(less, more)]).toEqual([
		less,
		less,
		more,
		more,
	]);
});

describe("a cost", () => {
	test("is ⌈Σ units × rate ÷ 1000⌉, or undefined if it is out of range", () => {
		fc.assert(
			fc.property(lines, (of) => {
				const exact = (picoOf(of) + 999n) / 1000n;
				const cost = costNanoUsd(of);
				if (exact > SAFE) expect(cost).toBeUndefined();
				else expect(BigInt(cost as number)).toBe(exact);
			}),
			RUNS,
		);
	});

	test("is exact near 2^53", () => {
		const near = fc
			.tuple(fc.integer({ min: 1, max: 2 ** 26 }), fc.integer({ min: -3, max: 3 }))
			.map(([units, off]) => ({ units, rate: (Math.floor(2 ** 53 / units) + off) as PicoUsdPerUnit }));
		fc.assert(
			fc.property(fc.array(near, { minLength: 1, maxLength: 3 }), (of) => {
				expect(BigInt(costNanoUsd(of) as number)).toBe((picoOf(of) + 999n) / 1000n);
			}),
			RUNS,
		);
	});

	test("is rounded once, after its parts are added up", () => {
		const third: CostLine = { units: 1, rate: 333 as PicoUsdPerUnit };
		expect(costNanoUsd([third, third, third]) as number).toBe(1);
	});

	test("of 0 is 0, and of the smallest amount is one nano-dollar", () => {
		expect(costNanoUsd([]) as number).toBe(0);
		expect(costNanoUsd([{ units: 1, rate: 1 as PicoUsdPerUnit }]) as number).toBe(1);
	});

	test("throws for units that are negative, fractional or too large", () => {
		for (const units of [-1, 0.5, Number.NaN, 2 ** 53])
			expect(() => costNanoUsd([{ units, rate: 1 as PicoUsdPerUnit }])).toThrow();
	});
});

describe("the affordable units", () => {
	test("are the most units that fit into the budget together with the fixed cost", () => {
		fc.assert(
			fc.property(amount, lines, rate, (budget, fixed, each) => {
				const left = BigInt(budget) * 1000n - picoOf(fixed);
				const units = affordableUnits(budget, fixed, each);
				expect(Number.isSafeInteger(units) && units >= 0).toBe(true);
				if (left < 0n) expect(units).toBe(0);
				else if (each === 0) expect(units).toBe(Number.MAX_SAFE_INTEGER);
				else {
					const exact = left / BigInt(each);
					expect(BigInt(units)).toBe(exact > SAFE ? SAFE : exact);
				}
			}),
			RUNS,
		);
	});

	test("cost no more than the budget, and one unit more costs more", () => {
		const small = fc.nat(1_000_000);
		fc.assert(
			fc.property(small, small, fc.integer({ min: 1, max: 5_000 }), (budget, prompt, each) => {
				const fixed: CostLine[] = [{ units: prompt, rate: 700 as PicoUsdPerUnit }];
				const rated = each as PicoUsdPerUnit;
				const units = affordableUnits(budget as NanoUsd, fixed, rated);
				const cost = (more: number) => costNanoUsd([...fixed, { units: units + more, rate: rated }]) as number;
				if (units > 0) expect(cost(0)).toBeLessThanOrEqual(budget);
				expect(cost(1)).toBeGreaterThan(budget);
			}),
			RUNS,
		);
	});
});

describe("an amount", () => {
	test("is unchanged after formatting and parsing", () => {
		fc.assert(
			fc.property(amount, (value) => {
				const text = formatUsd(value);
				expect(text).toMatch(/^\d+\.\d{2,9}$/);
				expect(parseUsd(text)).toBe(value);
			}),
			RUNS,
		);
	});

	test("keeps its sign in text", () => {
		expect(formatUsd(nanoUsd(-1_500_000_000))).toBe("-1.50");
		expect(formatUsd(nanoUsd(-1))).toBe("-0.000000001");
	});

	test("is parsed only from plain decimal digits in range", () => {
		for (const text of ["", " 1", "1 ", "+1", "-1", "1e3", "0x10", ".5", "1.", "1,5", "NaN", "Infinity", "١", "1_000"])
			expect(parseUsd(text)).toBeUndefined();
		expect(parseUsd("0.0000000001")).toBeUndefined();
		expect(parseUsd("0.1000000000000")).toBe(nanoUsd(100_000_000));
		expect(parseUsd("9007199.254740991")).toBe(MAX_NANO_USD);
		expect(parseUsd("9007199.254740992")).toBeUndefined();
		expect(parseUsd("9999999999999999")).toBeUndefined();
		expect(parseUsd("9".repeat(400))).toBeUndefined();
	});

	test("throws if the number is not a safe integer", () => {
		expect(() => addUsd(MAX_NANO_USD, nanoUsd(1))).toThrow();
		expect(() => subUsd(nanoUsd(-Number.MAX_SAFE_INTEGER), nanoUsd(1))).toThrow();
		expect(() => nanoUsd(0.1)).toThrow();
		expect(() => nanoUsdOfColumn("9007199254740993")).toThrow();
		expect(nanoUsdOfColumn("9007199254740991")).toBe(MAX_NANO_USD);
	});
});

describe("a rate", () => {
	test("per million is unchanged after formatting and parsing", () => {
		fc.assert(
			fc.property(
				fc.nat(1_000_000).chain((dollars) => fc.nat(999_999).map((micro) => dollars * 1_000_000 + micro)),
				(pico) => {
					const value = Math.min(pico, 1_000_000_000_000) as PicoUsdPerUnit;
					expect(parseRatePerMillion(formatRatePerMillion(value))).toBe(value);
				},
			),
			RUNS,
		);
	});

	test("per unit is unchanged after formatting, which uses no exponent", () => {
		fc.assert(
			fc.property(rate, (value) => {
				const text = formatRatePerUnit(value);
				expect(text).toMatch(/^\d+(\.\d{1,12})?$/);
				expect(parseRatePerUnit(text)).toBe(value);
			}),
			RUNS,
		);
	});

	test("is refused if it is too high or has too many decimals", () => {
		expect(parseRatePerMillion("1000000")).toBe(1_000_000_000_000 as PicoUsdPerUnit);
		expect(parseRatePerMillion("1000000.000001")).toBeUndefined();
		expect(parseRatePerMillion("0.0000001")).toBeUndefined();
		expect(parseRatePerUnit("0.0000000000001")).toBeUndefined();
		expect(formatRatePerUnit(230_000 as PicoUsdPerUnit)).toBe("0.00000023");
	});
});
