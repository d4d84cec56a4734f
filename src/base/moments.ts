import type { Clock } from "./clock.ts";

/** What has not ended by then is reported, at most a tenth of a second later. */
const MOMENT_MS = 100;

/**
 * Detects what lasts longer than a moment: most short requests end sooner and need no timer or listener of their own.
 * Keeps a place for each that began since the last tick. `lasts` does not throw.
 */
export function createMoments<One>(clock: Clock, lasts: (one: One) => void) {
	/** In the order in which they began; undefined once ended. Not a Set, for the reason given in `SlotPool`. */
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
		/** Returns the number for `end`. */
		begin(one: One) {
			if (!isTicking) {
				isTicking = true;
				clock.after(MOMENT_MS, tick);
			}
			return before + young.push(one) - 1;
		},
		/** True if it lasted long enough to be reported. Once for each `begin`. */
		end(nth: number) {
			if (nth < before || young[nth - before] === undefined) return true;
			young[nth - before] = undefined;
			return false;
		},
	};
}
