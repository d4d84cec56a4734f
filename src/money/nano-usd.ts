import { AssertionError } from "../base/assert.ts";
import { formatDecimal, parseDecimal } from "./decimal.ts";

/** An amount of money: an integer number of nano-dollars (10⁻⁹ USD). At most 2^53 − 1, about $9,007,199. */
export type NanoUsd = number & { readonly unit: "nano-usd" };

/** A rate: an integer number of pico-dollars (10⁻¹² USD) per unit (token, audio second, image, search, request). */
export type PicoUsdPerUnit = number & { readonly unit: "pico-usd-per-unit" };

export const ZERO_USD = 0 as NanoUsd;
export const NANO_PER_USD = 1_000_000_000;
const PICO_PER_NANO = 1000;

export const MAX_NANO_USD = Number.MAX_SAFE_INTEGER as NanoUsd;

/** Brands an integer; asserts that it is one. */
export function nanoUsd(value: number): NanoUsd {
	// Not `assert`, which would build its message for every amount.
	if (!Number.isSafeInteger(value)) throw new AssertionError(`nano-dollars are safe integers, got ${value}`);
	return value as NanoUsd;
}

/** Reads a `bigint` column as the driver gives it (a string, or a number in JSON). */
export function nanoUsdOfColumn(value: string | number | bigint): NanoUsd {
	return nanoUsd(Number(value));
}

/**
 * As `nanoUsdOfColumn`, for display of lifetime and service-wide sums, which have no limit. Past MAX_NANO_USD it
 * returns the nearest double (off by at most a nano-dollar below USD 18 million).
 */
export function sumOfColumn(value: string | number | bigint): NanoUsd {
	return Number(value) as NanoUsd;
}

/** The sum for display only: above MAX_NANO_USD it is rounded instead of refused, like `sumOfColumn`. */
export function shownSum(a: NanoUsd, b: NanoUsd): NanoUsd {
	return (a + b) as NanoUsd;
}

/** The difference for display only: below −MAX_NANO_USD it is rounded instead of refused, like `sumOfColumn`. */
export function shownRest(a: NanoUsd, b: NanoUsd): NanoUsd {
	return (a - b) as NanoUsd;
}

export function addUsd(a: NanoUsd, b: NanoUsd): NanoUsd {
	return nanoUsd(a + b);
}

export function subUsd(a: NanoUsd, b: NanoUsd): NanoUsd {
	return nanoUsd(a - b);
}

export function minUsd(a: NanoUsd, b: NanoUsd): NanoUsd {
	return a < b ? a : b;
}

export function maxUsd(a: NanoUsd, b: NanoUsd): NanoUsd {
	return a > b ? a : b;
}

export interface CostLine {
	readonly units: number;
	readonly rate: PicoUsdPerUnit;
}

/**
 * cost = ⌈Σ units × rate ÷ 1000⌉ nano-dollars: one division, rounded up once.
 * Exact for any units and rates; undefined if the sum passes MAX_NANO_USD.
 */
export function costNanoUsd(lines: readonly CostLine[]): NanoUsd | undefined {
	let sumPico = 0;
	for (const line of lines) {
		if (!Number.isSafeInteger(line.units) || line.units < 0) {
			throw new AssertionError(`units are whole and not negative, got ${line.units}`);
		}
		sumPico += line.units * line.rate;
	}
	// Rounding of a float product is monotonic: a sum below 2^53 is exact.
	if (sumPico <= Number.MAX_SAFE_INTEGER) return Math.ceil(sumPico / PICO_PER_NANO) as NanoUsd;
	return costByBigInt(lines);
}

/** Rare: more than $9,007 in one sum. */
function costByBigInt(lines: readonly CostLine[]): NanoUsd | undefined {
	let sumPico = 0n;
	for (const line of lines) sumPico += BigInt(line.units) * BigInt(line.rate);
	const nano = (sumPico + 999n) / 1000n;
	return nano > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : (Number(nano) as NanoUsd);
}

/** The most units at `rate` that `budget` pays in addition to `fixed`. Rate 0 pays for any number. */
export function affordableUnits(budget: NanoUsd, fixed: readonly CostLine[], rate: PicoUsdPerUnit): number {
	let leftPico = BigInt(budget) * 1000n;
	for (const line of fixed) leftPico -= BigInt(line.units) * BigInt(line.rate);
	if (leftPico < 0n) return 0;
	if (rate === 0) return Number.MAX_SAFE_INTEGER;
	const units = leftPico / BigInt(rate);
	return units > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(units);
}

/** Reads decimal dollars ("100", "0.25"); undefined unless they are a whole number of nano-dollars in range. */
export function parseUsd(text: string): NanoUsd | undefined {
	return parseDecimal(text, 9) as NanoUsd | undefined;
}

/** Reads "USD per million units" ("0.23") as a rate; at most 6 decimals, at most 1000000. */
export function parseRatePerMillion(text: string): PicoUsdPerUnit | undefined {
	const pico = parseDecimal(text, 6);
	return pico === undefined || pico > 1_000_000 * 1_000_000 ? undefined : (pico as PicoUsdPerUnit);
}

/** Reads "USD per unit" ("0.006") as a rate; at most 12 decimals, at most 9007. */
export function parseRatePerUnit(text: string): PicoUsdPerUnit | undefined {
	return parseDecimal(text, 12) as PicoUsdPerUnit | undefined;
}

/** Dollars with 2 to 9 decimals and no exponent: "12.50", "0.000000001". */
export function formatUsd(amount: NanoUsd): string {
	return formatDecimal(amount, 9, 2);
}

/** A rate as USD per single unit, the form of a public price list: "0.00000023". */
export function formatRatePerUnit(rate: PicoUsdPerUnit): string {
	return formatDecimal(rate, 12, 0);
}

/** A rate as USD per million units, the form of `tollgate.yaml`: "0.23". */
export function formatRatePerMillion(rate: PicoUsdPerUnit): string {
	return formatDecimal(rate, 6, 0);
}
