import type { Clock } from "./clock.ts";

/** Milliseconds after which work counts as long; it is reported up to a tenth of a second later. */
const MOMENT_MS = 100;

/**
 * Reports work that lasts longer than a moment. Most requests end sooner and need neither timer nor listener. `lasts`
 * must not throw.
 */
export function createLongRunWatch<One>(clock: Clock, lasts: (one: One) => void) {
	/** Work in order of its start; undefined if it ended. Not a Set, which keeps memory of removed members. */
	let young: (One | undefined)[] = [];
	/** Number that the first entry of `young` has. */
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
		/** Records a start. Returns a number for `end`. */
		begin(one: One) {
			if (!isTicking) {
				isTicking = true;
				clock.after(MOMENT_MS, tick);
			}
			return before + young.push(one) - 1;
		},
		/** Records an end, once per `begin`. True if the work was reported as long. */
		end(nth: number) {
			if (nth < before || young[nth - before] === undefined) return true;
			young[nth - before] = undefined;
			return false;
		},
	};
}
