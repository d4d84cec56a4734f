/** Long deadlines that nearly never fire: a timer of the runtime for each of them costs more than all else about it. */
export interface TimerWheel {
	/** Calls `run` once, `delayMs` from now or up to two ticks later; the returned function cancels it. */
	after(delayMs: number, run: () => void): () => void;
}

export interface TimerWheelOptions {
	readonly nowMs: () => number;
	readonly tickMs: number;
	/** Calls `tick` every `tickMs` until the returned function is called. */
	readonly every: (tickMs: number, tick: () => void) => () => void;
}

/**
 * One timer for all deadlines: they lie in buckets of one tick each. It runs while there are any. A deadline that throws
 * does so as an uncaught exception, like a timer's, and holds up no other.
 */
export function createTimerWheel({ nowMs, tickMs, every }: TimerWheelOptions): TimerWheel {
	const buckets = new Map<number, Set<() => void>>();
	/** The last tick whose bucket is done with. */
	let done = 0;
	let stop: (() => void) | undefined;

	function tick(): void {
		const now = Math.floor(nowMs() / tickMs);
		while (done < now) {
			done += 1;
			const due = buckets.get(done);
			if (due === undefined) continue;
			buckets.delete(done);
			for (const entry of due) queueMicrotask(entry);
		}
		rest();
	}

	function rest(): void {
		if (buckets.size > 0) return;
		stop?.();
		stop = undefined;
	}

	return {
		after(delayMs, run) {
			if (stop === undefined) {
				done = Math.floor(nowMs() / tickMs);
				stop = every(tickMs, tick);
			}
			const at = Math.max(done + 1, Math.ceil((nowMs() + delayMs) / tickMs));
			let bucket = buckets.get(at);
			if (bucket === undefined) {
				bucket = new Set();
				buckets.set(at, bucket);
			}
			const entry = () => {
				if (own.delete(entry)) run();
			};
			const own = bucket;
			own.add(entry);
			return () => {
				if (!own.delete(entry) || own.size > 0 || buckets.get(at) !== own) return;
				buckets.delete(at);
				rest();
			};
		},
	};
}
