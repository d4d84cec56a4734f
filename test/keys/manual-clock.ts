import type { Clock } from "../../src/base/clock.ts";

export function manualClock(startMs = 1_000_000): Clock & { advance(ms: number): void } {
	let nowMs = startMs;
	let timers: { dueMs: number; run: () => void }[] = [];
	return {
		wallMs: () => nowMs,
		monotonicMs: () => nowMs,
		after(delayMs, run) {
			const timer = { dueMs: nowMs + delayMs, run };
			timers.push(timer);
			return () => {
				timers = timers.filter((other) => other !== timer);
			};
		},
		advance(ms) {
			nowMs += ms;
			const due = timers.filter((timer) => timer.dueMs <= nowMs);
			timers = timers.filter((timer) => timer.dueMs > nowMs);
			for (const timer of due) timer.run();
		},
	};
}
