import { SlotPool } from "./slot-pool.ts";

export interface TimerWheelOptions {
	readonly nowMs: () => number;
	readonly tickMs: number;
	/** Milliseconds by which a late tick counts as a stall of the event loop. */
	readonly stallMs: number;
	/** Calls `tick` every `tickMs` milliseconds until the returned function is called. */
	readonly every: (tickMs: number, tick: () => void) => () => void;
}

interface Deadline {
	readonly run: () => void;
	slot: number;
}

/**
 * Timers for long deadlines that rarely expire; a runtime timer for each would be costly. One timer serves them all, in
 * buckets of one tick; it runs while there are deadlines and one tick longer. A callback that throws causes an uncaught
 * exception, as with `setTimeout`, and delays no other callback. After a stall, deadlines wait for one more tick,
 * because awaited events may have arrived and not been read yet.
 */
export function createTimerWheel({ nowMs, tickMs, stallMs, every }: TimerWheelOptions) {
	const buckets = new Map<number, SlotPool<Deadline>>();
	/** Number of deadlines. An empty bucket is kept until its tick, because the next deadline often falls into it. */
	let waiting = 0;
	/** Number of the last tick whose bucket was processed. */
	let done = 0;
	let tickedMs = 0;
	let isSparing = false;
	let stop: (() => void) | undefined;

	function tick(): void {
		const sinceMs = nowMs() - tickedMs;
		tickedMs += sinceMs;
		// Waits never twice in a row: otherwise no deadline would expire in an event loop that is always late.
		isSparing = sinceMs >= stallMs && !isSparing;
		if (isSparing) return;
		const now = Math.floor(tickedMs / tickMs);
		while (done < now) {
			done += 1;
			const due = buckets.get(done);
			if (due === undefined) continue;
			buckets.delete(done);
			for (const deadline of due) queueMicrotask(() => fire(deadline, due));
		}
		if (waiting > 0) return;
		buckets.clear();
		stop?.();
		stop = undefined;
	}

	function fire(deadline: Deadline, due: SlotPool<Deadline>): void {
		if (forget(deadline, due)) deadline.run();
	}

	function forget(deadline: Deadline, bucket: SlotPool<Deadline>): boolean {
		const isDue = bucket.release(deadline.slot, deadline);
		if (isDue) waiting -= 1;
		return isDue;
	}

	return {
		/** Calls `run` after `delayMs`, up to two ticks late, three after a stall. The returned function cancels it. */
		after(delayMs: number, run: () => void) {
			if (stop === undefined) {
				tickedMs = nowMs();
				isSparing = false;
				done = Math.floor(tickedMs / tickMs);
				stop = every(tickMs, tick);
			}
			const at = Math.max(done + 1, Math.ceil((nowMs() + delayMs) / tickMs));
			let bucket = buckets.get(at);
			if (bucket === undefined) {
				bucket = new SlotPool();
				buckets.set(at, bucket);
			}
			const deadline: Deadline = { run, slot: 0 };
			deadline.slot = bucket.take(deadline);
			waiting += 1;
			// `bind`, because a closure would keep the variables of this call in memory.
			return forget.bind(undefined, deadline, bucket);
		},
	};
}
