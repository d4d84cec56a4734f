import { AssertionError } from "../base/assert.ts";
import { formatDecimal, parseDecimal } from "./decimal.ts";

/** An amount of money in nano-dollars (10⁻⁹ USD): an integer of at most 2^53 − 1, about $9,007,199. */
export type NanoUsd = number & { readonly unit: "nano-usd" };

/** A rate in pico-dollars (10⁻¹² USD) per unit (token, audio second, image, search, request): an integer. */
export type PicoUsdPerUnit = number & { readonly unit: "pico-usd-per-unit" };

export const ZERO_USD = 0 as NanoUsd;
export const NANO_PER_USD = 1_000_000_000;
const PICO_PER_NANO = 1000;

export const MAX_NANO_USD = Number.MAX_SAFE_INTEGER as NanoUsd;

/** Brands an integer as an amount. Throws if it is not a safe integer. */
export function nanoUsd(value: number): NanoUsd {
	// Not `assert`, which would format its message for every amount.
	if (!Number.isSafeInteger(value)) throw new AssertionError(`nano-dollars are safe integers, got ${value}`);
	return value as NanoUsd;
}

/** Converts the value of a `bigint` column, which the driver returns as a string, or in JSON as a number. */
export function nanoUsdOfColumn(value: string | number | bigint): NanoUsd {
	return nanoUsd(Number(value));
}

/**
 * Like `nanoUsdOfColumn`, but for displaying sums, which have no limit. Above MAX_NANO_USD, returns the nearest double
 * (off by at most a nano-dollar below USD 18 million).
 */
export function displaySumOfColumn(value: string | number | bigint): NanoUsd {
	return Number(value) as NanoUsd;
}

/** Sum of two amounts, for display only: rounded above MAX_NANO_USD. */
export function displaySum(a: NanoUsd, b: NanoUsd): NanoUsd {
	return (a + b) as NanoUsd;
}

/** Difference of two amounts, for display only: rounded below −MAX_NANO_USD. */
export function displayDifference(a: NanoUsd, b: NanoUsd): NanoUsd {
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
 * cost = ⌈Σ units × rate ÷ 1000⌉ nano-dollars: one division, rounded up once, exact for any units and rates. Undefined
 * above MAX_NANO_USD.
 */
export function costNanoUsd(lines: readonly CostLine[]): NanoUsd | undefined {
	let sumPico = 0;
	for (const line of lines) {
		if (!Number.isSafeInteger(line.units) || line.units < 0) {
			throw new AssertionError(`units are whole and not negative, got ${line.units}`);
		}
		sumPico += line.units * line.rate;
	}
	// Exact: every partial sum is at most this sum, which is below 2^53.
	if (sumPico <= Number.MAX_SAFE_INTEGER) return Math.ceil(sumPico / PICO_PER_NANO) as NanoUsd;
	return costByBigInt(lines);
}

/** Computes sums above $9,007, which are rare, without floating point. */
function costByBigInt(lines: readonly CostLine[]): NanoUsd | undefined {
	let sumPico = 0n;
	for (const line of lines) sumPico += BigInt(line.units) * BigInt(line.rate);
	const nano = (sumPico + 999n) / 1000n;
	return nano > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : (Number(nano) as NanoUsd);
}

/** Maximum units at `rate` that `budget` pays in addition to `fixed`. At rate 0 the largest number. */
export function affordableUnits(budget: NanoUsd, fixed: readonly CostLine[], rate: PicoUsdPerUnit): number {
	let leftPico = BigInt(budget) * 1000n;
	for (const line of fixed) leftPico -= BigInt(line.units) * BigInt(line.rate);
	if (leftPico < 0n) return 0;
	if (rate === 0) return Number.MAX_SAFE_INTEGER;
	const units = leftPico / BigInt(rate);
	return units > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(units);
}

/** Parses decimal dollars ("100", "0.25"); undefined if out of range or with more than nine decimals. */
export function parseUsd(text: string): NanoUsd | undefined {
	return parseDecimal(text, 9) as NanoUsd | undefined;
}

/** Parses USD per million units ("0.23"), with at most 6 decimals and at most 1000000. */
export function parseRatePerMillion(text: string): PicoUsdPerUnit | undefined {
	const pico = parseDecimal(text, 6);
	return pico === undefined || pico > 1_000_000 * 1_000_000 ? undefined : (pico as PicoUsdPerUnit);
}

/** Parses USD per unit ("0.006"), with at most 12 decimals and at most 9007. */
export function parseRatePerUnit(text: string): PicoUsdPerUnit | undefined {
	return parseDecimal(text, 12) as PicoUsdPerUnit | undefined;
}

/** Writes dollars with 2 to 9 decimals, without an exponent: "12.50", "0.000000001". */
export function formatUsd(amount: NanoUsd): string {
	return formatDecimal(amount, 9, 2);
}

/** Writes a rate as USD per unit, as OpenRouter's price list does: "0.00000023". */
export function formatRatePerUnit(rate: PicoUsdPerUnit): string {
	return formatDecimal(rate, 12, 0);
}

/** Writes a rate as USD per million units, as `tollgate.yaml` does: "0.23". */
export function formatRatePerMillion(rate: PicoUsdPerUnit): string {
	return formatDecimal(rate, 6, 0);
}

/** US cents, the unit of card payments. Each function says in which direction it rounds. */

const NANO_USD_PER_CENT = 10_000_000;

export function isWholeCents(amount: NanoUsd): boolean {
	return amount % NANO_USD_PER_CENT === 0;
}

/** Whole cents of an amount, rounded down. */
export function centsRoundedDown(amount: NanoUsd): number {
	return (amount - (amount % NANO_USD_PER_CENT)) / NANO_USD_PER_CENT;
}

/** Fewest whole cents that cover an amount (0 or more). */
export function centsRoundedUp(amount: NanoUsd): number {
	return centsRoundedDown(amount) + (isWholeCents(amount) ? 0 : 1);
}

/** Amount of whole cents. Asserts that it is in range. */
export function nanoUsdOfCents(cents: number): NanoUsd {
	return nanoUsd(cents * NANO_USD_PER_CENT);
}

/** US dollars as a JSON number. Only for output, because it is not exact for large amounts. */
export type JsonUsd = number & { readonly unit: "json-usd" };

/** 2^23 dollars, above which adjacent doubles differ by more than a nano-dollar. */
const DOUBLE_NANO_USD_MAX = 2 ** 23 * NANO_PER_USD;

/** Dollars as a number, for JSON clients that expect a number. Exact below DOUBLE_NANO_USD_MAX. */
export function jsonUsd(amount: NanoUsd): JsonUsd {
	if (Math.abs(amount) < DOUBLE_NANO_USD_MAX) return (amount / NANO_PER_USD) as JsonUsd;
	return (JSON as unknown as { rawJSON(text: string): JsonUsd }).rawJSON(formatUsd(amount));
}

/** Converts back a number that `jsonUsd` wrote. Exact below two million dollars. */
export function nanoUsdOfJson(value: JsonUsd): NanoUsd {
	return nanoUsd(Math.round(value * NANO_PER_USD));
}
