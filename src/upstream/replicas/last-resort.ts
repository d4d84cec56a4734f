import type { Clock } from "../../base/clock.ts";

/**
 * When a replica that is doubted is asked all the same, since there is no other: whoever comes next would be refused, and
 * so loses nothing by it. Now and then only, so that nobody floods what just comes to itself.
 */
export interface LastResort {
	/** Something speaks against the replica. */
	doubted(): void;
	isDue(): boolean;
	/** A call began there: the next one, before that is over, only if it takes its time. */
	begun(): void;
	/** A call ended that says nothing of it, as its client left. */
	left(): void;
}

/** Between the last failure, or a call that was let through and left, and the next call. */
const PAUSE_MS = 1_000;
const ALONE_MS = 5_000;

export function createLastResort(clock: Clock): LastResort {
	let dueAtMs = 0;
	return {
		doubted() {
			dueAtMs = clock.monotonicMs() + PAUSE_MS;
		},
		isDue: () => clock.monotonicMs() >= dueAtMs,
		begun() {
			dueAtMs = clock.monotonicMs() + ALONE_MS;
		},
		// Never later than it was, or who leaves again and again would keep all others from it.
		left() {
			dueAtMs = Math.min(dueAtMs, clock.monotonicMs() + PAUSE_MS);
		},
	};
}
