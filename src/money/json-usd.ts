import { formatUsd, NANO_PER_USD, type NanoUsd, nanoUsd } from "./nano-usd.ts";

/** US dollars as a JSON number, for output only. */
export type JsonUsd = number & { readonly unit: "json-usd" };

/** 2^23 dollars; above it, neighbouring doubles are more than a nano-dollar apart. */
const DOUBLE_NANO_USD_MAX = 2 ** 23 * NANO_PER_USD;

/**
 * For JSON clients that expect a number. Below the bound the double's shortest decimal, which JSON writes, is exactly
 * the amount. Raw text would cost each answer some microseconds.
 */
export function jsonUsd(amount: NanoUsd): JsonUsd {
	if (Math.abs(amount) < DOUBLE_NANO_USD_MAX) return (amount / NANO_PER_USD) as JsonUsd;
	return (JSON as unknown as { rawJSON(text: string): JsonUsd }).rawJSON(formatUsd(amount));
}

/** The amount that `jsonUsd` wrote; exact below two million dollars. */
export function nanoUsdOfJson(value: JsonUsd): NanoUsd {
	return nanoUsd(Math.round(value * NANO_PER_USD));
}
