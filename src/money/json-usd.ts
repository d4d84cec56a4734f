import { formatUsd, NANO_PER_USD, type NanoUsd, nanoUsd } from "./nano-usd.ts";

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
