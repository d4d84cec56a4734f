import { SlotPool } from "./slot-pool.ts";

/** Long deadlines that nearly never fire: a timer of the runtime for each of them costs more than all else about it. */
export interface TimerWheel {
	/**
	 * Calls `run` once, `delayMs` from now or up to two ticks later, and a tick more where the loop stood still; the returned
	 * function cancels it.
	 */
	after(delayMs: number, run: () => void): () => void;
}

export interface TimerWheelOptions {
	readonly nowMs: () => number;
	readonly tickMs: number;
	/** A tick that comes so much later than the one before it says that the loop stood still. */
	readonly stallMs: number;
	/** Calls `tick` every `tickMs` until the returned function is called. */
	readonly every: (tickMs: number, tick: () => void) => () => void;
}

interface Deadline {
	readonly run: () => void;
	slot: number;
}

/**
 * One timer for all deadlines: they lie in buckets of one tick each. It runs while there are any, and a tick longer. A deadline that throws
 * does so as an uncaught exception, like a timer's, and holds up no other. Where a process or its machine stood still, what deadlines are
 * about may have come meanwhile and only not been read: they wait for one tick more, so that it is.
 */
export function createTimerWheel({ nowMs, tickMs, stallMs, every }: TimerWheelOptions): TimerWheel {
	const buckets = new Map<number, SlotPool<Deadline>>();
	/** In all buckets. An empty one stays until its tick, since the next deadline of its kind is mostly due with it. */
	let waiting = 0;
	/** The last tick whose bucket is done with. */
	let done = 0;
	let tickedMs = 0;
	let isSparing = false;
	let stop: (() => void) | undefined;

	function tick(): void {
		const sinceMs = nowMs() - tickedMs;
		tickedMs += sinceMs;
		// Never twice in a row, or a loop that is always late would have no deadlines.
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
		after(delayMs, run) {
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
			// Bound, not a closure: that would keep the variables of this call in an object of their own.
			return forget.bind(undefined, deadline, bucket);
		},
	};
}
