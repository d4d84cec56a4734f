/** US cents, the unit of card payments. Each function says in which direction it rounds. */
import { type NanoUsd, nanoUsd } from "./nano-usd.ts";

const NANO_USD_PER_CENT = 10_000_000;

export function isWholeCents(amount: NanoUsd): boolean {
	return amount % NANO_USD_PER_CENT === 0;
}

/** Whole cents of an amount, rounded down. */
export function wholeCents(amount: NanoUsd): number {
	return (amount - (amount % NANO_USD_PER_CENT)) / NANO_USD_PER_CENT;
}

/** Fewest whole cents that cover an amount (0 or more). */
export function coveringCents(amount: NanoUsd): number {
	return wholeCents(amount) + (isWholeCents(amount) ? 0 : 1);
}

/** Amount of whole cents. Asserts that it is in range. */
export function nanoUsdOfCents(cents: number): NanoUsd {
	return nanoUsd(cents * NANO_USD_PER_CENT);
}
