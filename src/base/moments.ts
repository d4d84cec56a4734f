import type { Clock } from "./clock.ts";

/**
 * Tells what lasts longer than a moment: what is over sooner, as most short requests are, needs no timer and no listener
 * of its own. As many are kept as there are requests open at once.
 */
export interface Moments<One> {
	begin(one: One): void;
	/** True if it has lasted long enough to be told; once for each `begin`. */
	end(one: One): boolean;
}

/** Whatever has begun and not ended by then is told, a tenth of a second later at the latest. */
const MOMENT_MS = 100;

/** `lasts` does not throw. */
export function createMoments<One>(clock: Clock, lasts: (one: One) => void): Moments<One> {
	const young = new Set<One>();
	let isTicking = false;

	function tick(): void {
		isTicking = false;
		for (const one of young) {
			young.delete(one);
			lasts(one);
		}
	}

	return {
		begin(one) {
			young.add(one);
			if (isTicking) return;
			isTicking = true;
			clock.after(MOMENT_MS, tick);
		},
		end: (one) => !young.delete(one),
	};
}
