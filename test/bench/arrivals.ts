/** When the requests of an open loop are due, whatever becomes of those before them. */
import { createRandom } from "../support/random.ts";

export interface ArrivalOptions {
	readonly kind: "poisson" | "fixed";
	readonly perSecond: number;
	readonly durationMs: number;
	readonly seed: number;
}

/**
 * Milliseconds from the start of each arrival, ascending: all the same distance apart, or with exponential gaps, as they
 * come from many people who do not know of each other. The same seed gives the same ones, in every process.
 */
export function arrivalsOf({ kind, perSecond, durationMs, seed }: ArrivalOptions): Float64Array {
	const random = createRandom(seed);
	const gapMs = 1000 / perSecond;
	const due: number[] = [];
	for (let atMs = 0; atMs < durationMs; ) {
		due.push(atMs);
		atMs += kind === "fixed" ? gapMs : -Math.log(1 - random.fraction()) * gapMs;
	}
	return Float64Array.from(due);
}
