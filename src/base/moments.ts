import type { Clock } from "./clock.ts";

/** Milliseconds after which work counts as long. It is reported up to a tenth of a second later. */
const MOMENT_MS = 100;

/**
 * Reports work that lasts longer than MOMENT_MS. Most requests end sooner, so they need neither timer nor listener.
 * `lasts` is called with the work and must not throw.
 */
export function createLongRunWatch<One>(clock: Clock, lasts: (one: One) => void) {
	/** Recent work in order of its start; undefined where it ended. Not a Set, which keeps memory of removed members. */
	let young: (One | undefined)[] = [];
	/** Number of the first entry of `young`. */
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
		/** Records the start of work. Returns its number for `end`. */
		begin(one: One) {
			if (!isTicking) {
				isTicking = true;
				clock.after(MOMENT_MS, tick);
			}
			return before + young.push(one) - 1;
		},
		/** Records the end of work; call it once per `begin`. True if the work was reported as long. */
		end(nth: number) {
			if (nth < before || young[nth - before] === undefined) return true;
			young[nth - before] = undefined;
			return false;
		},
	};
}
