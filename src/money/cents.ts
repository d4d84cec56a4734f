/** Cents, in which card payments are counted. Nothing is divided that leaves a rest. */
import type { NanoUsd } from "./nano-usd.ts";
import { nanoUsd } from "./nano-usd.ts";

const NANO_USD_PER_CENT = 10_000_000;

export function isWholeCents(amount: NanoUsd): boolean {
	return amount % NANO_USD_PER_CENT === 0;
}

/** The whole cents of an amount; what is less than one is left out. */
export function centsOf(amount: NanoUsd): number {
	return (amount - (amount % NANO_USD_PER_CENT)) / NANO_USD_PER_CENT;
}

/** Cents that cover an amount, which is not negative. */
export function coveringCents(amount: NanoUsd): number {
	return centsOf(amount) + (isWholeCents(amount) ? 0 : 1);
}

/** Of whole cents; more of them than an amount can be is a bug. */
export function nanoUsdOfCents(cents: number): NanoUsd {
	return nanoUsd(cents * NANO_USD_PER_CENT);
}
