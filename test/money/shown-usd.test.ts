import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { nanoUsd, type PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import { createUsdFormat, ENGLISH_USD, GERMAN_USD, shownDecimals } from "../../src/money/shown-usd.ts";

const { showLineCost, showRatePerMillion, showRatePerUnit, showUsd, showUsdExact, showUsdShort } =
	createUsdFormat(ENGLISH_USD);

const shown = (show: (amount: ReturnType<typeof nanoUsd>) => string, cases: readonly (readonly [number, string])[]) =>
	expect(cases.map(([amount]) => [amount, show(nanoUsd(amount))])).toEqual(cases.map((one) => [...one]));

describe("a displayed amount", () => {
	test("has two decimals from a dollar on, four or more below", () => {
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

	test("keeps every digit in its exact form", () => {
		shown(showUsdExact, [
			[1, "USD 0.000000001"],
			[1_500_000_000, "USD 1.50"],
			[9_007_199_254_740_991, "USD 9,007,199.254740991"],
			[-20, "−USD 0.00000002"],
		]);
	});

	test("has two significant digits on an axis", () => {
		shown(showUsdShort, [
			[0, "$0"],
			[600_000_000, "$0.60"],
			[300_000_000, "$0.30"],
			[15_000_000, "$0.015"],
			[1_500, "$0.0000015"],
			[3, "$0.000000003"],
			[9.996e9, "$10.00"],
			[12.4e9, "$12"],
			[999.4e9, "$999"],
			[1_000e9, "$1K"],
			[12_345e9, "$12.3K"],
			[999_950e9, "$1M"],
			[1_050_000e9, "$1.05M"],
			[Number.MAX_SAFE_INTEGER, "$9.01M"],
			[-50_000_000, "−$0.05"],
			[-2_500e9, "−$2.5K"],
		]);
	});

	test("reports its number of decimals", () => {
		expect([0, 300, 12_345_678, 1_234_567_890_000_000].map((amount) => shownDecimals(nanoUsd(amount)))).toEqual([
			2, 7, 4, 2,
		]);
	});
});

test("shows rates with all digits", () => {
	const perMillion = [230_000, 1_000_000_000_000, 1].map((rate) => showRatePerMillion(rate as PicoUsdPerUnit));
	expect(perMillion).toEqual(["$0.23", "$1,000,000.00", "$0.000001"]);
	const each = [6_000_000_000, 1, 5_000_000_000_000_000].map((rate) => showRatePerUnit(rate as PicoUsdPerUnit));
	expect(each).toEqual(["$0.006", "$0.000000000001", "$5,000.00"]);
});

test("shows the line of a bill exactly", () => {
	expect(showLineCost({ units: 3, rate: 333 as PicoUsdPerUnit })).toBe("USD 0.000000000999");
	expect(showLineCost({ units: 2 ** 31, rate: 1_000_001 as PicoUsdPerUnit })).toBe("USD 2,147.485795483648");
	expect(showLineCost({ units: 2 ** 31, rate: 4_000_000_000_001 as PicoUsdPerUnit })).toBe(
		"USD 8,589,934,592.002147483648",
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
		shown(german.showUsd, [[312_450, "0,0003\u00a0$"]]);
		shown(german.showUsdExact, [[9_007_199_254_740_991, "9.007.199,254740991\u00a0USD"]]);
		shown(german.showUsdWhole, [[1_000_000_000_000, "1.000\u00a0$"]]);
		shown(german.showUsdShort, [
			[0, "0\u00a0$"],
			[1_230_000_000_000, "1,23\u00a0Tsd.\u00a0$"],
			[340_000_000_000_000_000 / 100, "3,4\u00a0Mio.\u00a0$"],
		]);
	});
});
