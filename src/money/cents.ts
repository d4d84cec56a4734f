/** Cents, the unit of card payments. This file rounds explicitly, up or down. */
import { type NanoUsd, nanoUsd } from "./nano-usd.ts";

const NANO_USD_PER_CENT = 10_000_000;

export function isWholeCents(amount: NanoUsd): boolean {
	return amount % NANO_USD_PER_CENT === 0;
}

/** Whole cents of an amount, rounded down. */
export function wholeCents(amount: NanoUsd): number {
	return (amount - (amount % NANO_USD_PER_CENT)) / NANO_USD_PER_CENT;
}

/** Whole cents that cover an amount (0 or more), rounded up. */
export function coveringCents(amount: NanoUsd): number {
	return wholeCents(amount) + (isWholeCents(amount) ? 0 : 1);
}

/** Amount of whole cents; asserts that it is in range. */
export function nanoUsdOfCents(cents: number): NanoUsd {
	return nanoUsd(cents * NANO_USD_PER_CENT);
}
