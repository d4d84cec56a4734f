import type { Clock } from "../../src/base/clock.ts";

/** A clock that advances only by `advance`. Timers run in the order of their times. */
export interface ManualClock extends Clock {
	advance(ms: number): void;
	pending(): number;
}

export function createManualClock(startMs = 1_000_000): ManualClock {
	let nowMs = startMs;
	const timers = new Set<{ atMs: number; run: () => void }>();
	return {
		wallMs: () => nowMs,
		monotonicMs: () => nowMs,
		after(delayMs, run) {
			const timer = { atMs: nowMs + delayMs, run };
			timers.add(timer);
			return () => timers.delete(timer);
		},
		advance(ms) {
			const untilMs = nowMs + ms;
			for (;;) {
				let due: { atMs: number; run: () => void } | undefined;
				for (const timer of timers)
					if (timer.atMs <= untilMs && (due === undefined || timer.atMs < due.atMs)) due = timer;
				if (due === undefined) break;
				timers.delete(due);
				nowMs = Math.max(nowMs, due.atMs);
				due.run();
			}
			nowMs = untilMs;
		},
		pending: () => timers.size,
	};
}
