import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { nanoUsd, type PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import { createUsdFormat, ENGLISH_USD, GERMAN_USD, shownDecimals } from "../../src/money/shown-usd.ts";

const { showLineCost, showRatePerMillion, showRatePerUnit, showUsd, showUsdExact, showUsdTick } =
	createUsdFormat(ENGLISH_USD);

const shown = (show: (amount: ReturnType<typeof nanoUsd>) => string, cases: readonly (readonly [number, string])[]) =>
	expect(cases.map(([amount]) => [amount, show(nanoUsd(amount))])).toEqual(cases.map((one) => [...one]));

describe("a displayed amount", () => {
	test("has two decimals from one dollar on, and at least four below", () => {
		shown(showUsd, [
			[0, "$0.00"],
			[1, "$0.000000001"],
			[19_999, "$0.00002"],
			[3_120, "$0.0000031"],
			[312_450, "$0.0003"],
			[50_000_000, "$0.05"],
			[999_999_999, "$1.00"],
			[1_000_000_000, "$1.00"],
			[1_204_500_000_000, "$1,204.50"],
			[9_007_199_254_740_991, "$9,007,199.25"],
			[-3_000_000_000, "−$3.00"],
		]);
	});

	test("is rounded to its last digit", () => {
		fc.assert(
			fc.property(fc.maxSafeNat(), (amount) => {
				const [whole = "", fraction = ""] = showUsd(nanoUsd(amount)).replace(/[$,]/g, "").split(".");
				const off = BigInt(whole + fraction.padEnd(9, "0")) - BigInt(amount);
				expect((off < 0n ? -off : off) * 2n).toBeLessThanOrEqual(10n ** BigInt(9 - Math.max(fraction.length, 2)));
			}),
			{ numRuns: 3_000 },
		);
	});

	test("keeps every digit if exact digits are requested", () => {
		shown(showUsdExact, [
			[1, "$0.000000001"],
			[1_500_000_000, "$1.50"],
			[9_007_199_254_740_991, "$9,007,199.254740991"],
			[-20, "−$0.00000002"],
		]);
	});

	test("has the same decimals at all ticks of an axis", () => {
		const ticks = (step: number) => [0, 1, 2, 3].map((times) => showUsdTick(nanoUsd(times * step), step));
		expect(ticks(50_000_000)).toEqual(["$0.00", "$0.05", "$0.10", "$0.15"]);
		expect(ticks(500_000_000)).toEqual(["$0.00", "$0.50", "$1.00", "$1.50"]);
		expect(ticks(2_000_000)).toEqual(["$0.000", "$0.002", "$0.004", "$0.006"]);
		expect(ticks(1)).toEqual(["$0.000000000", "$0.000000001", "$0.000000002", "$0.000000003"]);
		expect(ticks(500e9)).toEqual(["$0", "$500", "$1,000", "$1,500"]);
		expect(ticks(5_000e9)).toEqual(["$0", "$5K", "$10K", "$15K"]);
		expect(showUsdTick(nanoUsd(-20e9), 20e9)).toBe("−$20");
	});

	test("has the number of decimals that `shownDecimals` returns", () => {
		expect([0, 300, 12_345_678, 1_234_567_890_000_000].map((amount) => shownDecimals(nanoUsd(amount)))).toEqual([
			2, 7, 4, 2,
		]);
	});
});

test("shows all digits of a rate", () => {
	const perMillion = [230_000, 1_000_000_000_000, 1].map((rate) => showRatePerMillion(rate as PicoUsdPerUnit));
	expect(perMillion).toEqual(["$0.23", "$1,000,000.00", "$0.000001"]);
	const each = [6_000_000_000, 1, 5_000_000_000_000_000].map((rate) => showRatePerUnit(rate as PicoUsdPerUnit));
	expect(each).toEqual(["$0.006", "$0.000000000001", "$5,000.00"]);
});

test("shows the exact cost of a line of a bill", () => {
	expect(showLineCost({ units: 3, rate: 333 as PicoUsdPerUnit })).toBe("$0.000000000999");
	expect(showLineCost({ units: 2 ** 31, rate: 1_000_001 as PicoUsdPerUnit })).toBe("$2,147.485795483648");
	expect(showLineCost({ units: 2 ** 31, rate: 4_000_000_000_001 as PicoUsdPerUnit })).toBe(
		"$8,589,934,592.002147483648",
	);
});

describe("a displayed amount in German", () => {
	const german = createUsdFormat(GERMAN_USD);

	test("has the same digits with German separators", () => {
		const currency = new Intl.NumberFormat("de", { style: "currency", currency: "USD" });
		for (const amount of [0, 1_204_500_000_000, 9_007_199_254_740_991, -3_000_000_000]) {
			const whole = currency.format(amount / 1e9).replace("-", "−");
			expect(german.showUsd(nanoUsd(amount))).toBe(whole);
		}
		expect(german.showUsdTick(nanoUsd(2_000e9), 1_000e9)).toBe("2\u00a0Tsd.\u00a0$");
		shown(german.showUsd, [[312_450, "0,0003\u00a0$"]]);
		shown(german.showUsdExact, [[9_007_199_254_740_991, "9.007.199,254740991\u00a0$"]]);
		shown(german.showUsdWhole, [[1_000_000_000_000, "1.000\u00a0$"]]);
	});
});
