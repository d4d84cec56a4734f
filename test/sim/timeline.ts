import { drainMicrotasks } from "bun:jsc";

interface Event {
	readonly atMs: number;
	readonly order: number;
	readonly label: string;
	readonly run: () => void;
}

export type Timeline = ReturnType<typeof createTimeline>;

const RECENT_MAX = 400;

/** Simulated time: a queue of future events. Between two events, all promises run to their end. */
export function createTimeline() {
	const heap: Event[] = [];
	const cancelled = new Set<number>();
	const recent: Event[] = [];
	let nowMs = 0;
	let order = 0;
	let steps = 0;
	let hash = 0x811c9dc5;

	const before = (a: Event, b: Event) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

	function push(event: Event): void {
		let at = heap.length;
		heap.push(event);
		while (at > 0) {
			const parent = (at - 1) >> 1;
			if (!before(event, heap[parent] as Event)) break;
			heap[at] = heap[parent] as Event;
			at = parent;
		}
		heap[at] = event;
	}

	function pop(): Event {
		const top = heap[0] as Event;
		const last = heap.pop() as Event;
		if (heap.length === 0) return top;
		let at = 0;
		for (;;) {
			let child = 2 * at + 1;
			if (child >= heap.length) break;
			if (child + 1 < heap.length && before(heap[child + 1] as Event, heap[child] as Event)) child += 1;
			if (!before(heap[child] as Event, last)) break;
			heap[at] = heap[child] as Event;
			at = child;
		}
		heap[at] = last;
		return top;
	}

	function note(value: number): void {
		hash = Math.imul(hash ^ (value | 0), 0x01000193) >>> 0;
	}

	return {
		nowMs: () => nowMs,
		/** Calls `run` after `delayMs`. The returned function cancels the call. */
		after(delayMs: number, label: string, run: () => void) {
			const event = { atMs: nowMs + Math.max(0, delayMs), order: order++, label, run };
			push(event);
			return () => cancelled.add(event.order);
		},
		/** Runs the next event. False if there is none before `untilMs`; the time is then `untilMs`. */
		step(untilMs: number) {
			for (;;) {
				const next = heap[0];
				if (!next || next.atMs > untilMs) {
					nowMs = untilMs;
					return false;
				}
				pop();
				if (cancelled.delete(next.order)) continue;
				nowMs = next.atMs;
				note(next.order);
				note(Math.floor(nowMs * 1000));
				recent[steps++ % RECENT_MAX] = next;
				next.run();
				drainMicrotasks();
				return true;
			}
		},
		/** Hash of all events so far. The same seed must give the same hash. */
		hash: () => hash,
		note,
		/** The last events, newest last, which help to explain a failure. */
		recent: () =>
			[...recent].sort((a, b) => (before(a, b) ? -1 : 1)).map(({ atMs, label }) => `${atMs.toFixed(2)} ${label}`),
	};
}
