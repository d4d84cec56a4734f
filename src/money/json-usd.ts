import type { NanoUsd } from "./nano-usd.ts";
import { formatUsd, NANO_PER_USD, nanoUsd } from "./nano-usd.ts";

/** US dollars as a number of JSON. It is written and not calculated with. */
export type JsonUsd = number & { readonly unit: "json-usd" };

/** 2^23 dollars. From there on neighbouring doubles are more than a nano-dollar apart. */
const DOUBLE_NANO_USD_MAX = 2 ** 23 * NANO_PER_USD;

/**
 * For JSON whose clients expect a number. The text that is written is the amount exactly, to its last digit: below the
 * bound no other amount's decimal is as near to this double, and the shortest decimal that leads to it is what JSON
 * writes. (Writing all of them as raw text would cost each answer some microseconds.)
 */
export function jsonUsd(amount: NanoUsd): JsonUsd {
	if (Math.abs(amount) < DOUBLE_NANO_USD_MAX) return (amount / NANO_PER_USD) as JsonUsd;
	return (JSON as unknown as { rawJSON(text: string): JsonUsd }).rawJSON(formatUsd(amount));
}

/** The amount that `jsonUsd` wrote; exact below two million dollars. */
export function nanoUsdOfJson(value: JsonUsd): NanoUsd {
	return nanoUsd(Math.round(value * NANO_PER_USD));
}
