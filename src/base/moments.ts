import type { Clock } from "./clock.ts";

/**
 * Tells what lasts longer than a moment: what is over sooner, as most short requests are, needs no timer and no listener
 * of its own. It keeps a place for each that began since the last tick.
 */
export interface Moments<One> {
	/** Gives the number that ends it. */
	begin(one: One): number;
	/** True if it has lasted long enough to be told. Once for each `begin`. */
	end(nth: number): boolean;
}

/** Whatever has begun and not ended by then is told, a tenth of a second later at the latest. */
const MOMENT_MS = 100;

/** `lasts` does not throw. */
export function createMoments<One>(clock: Clock, lasts: (one: One) => void): Moments<One> {
	/** In the order in which they began; whose end came is none. A Set would keep them, as `SlotPool` says. */
	let young: (One | undefined)[] = [];
	/** How many began before the first of these. */
	let before = 0;
	let isTicking = false;

	function tick(): void {
		isTicking = false;
		const due = young.length;
		for (let at = 0; at < due; at++) {
			const one = young[at];
			young[at] = undefined;
			if (one !== undefined) lasts(one);
		}
		before += due;
		young = young.slice(due);
	}

	return {
		begin(one) {
			if (!isTicking) {
				isTicking = true;
				clock.after(MOMENT_MS, tick);
			}
			return before + young.push(one) - 1;
		},
		end(nth) {
			if (nth < before || young[nth - before] === undefined) return true;
			young[nth - before] = undefined;
			return false;
		},
	};
}
