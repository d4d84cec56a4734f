import type { Clock } from "../base/clock.ts";
import type { BatchPause } from "./batch-record.ts";

/** Concurrent lines of one batch in one instance. */
const IN_FLIGHT_MAX = 32;
const HOLD_MS_MIN = 250;
const HOLD_MS_MAX = 15_000;

/** Limits a batch's concurrent lines: fewer, and later, while credit or places do not suffice. */
export function createLinePace({ clock }: { clock: Clock }) {
	let window = IN_FLIGHT_MAX;
	let holdMs = HOLD_MS_MIN;
	let holdUntilMs = 0;
	let pause: BatchPause | null = null;

	function hold(): void {
		holdUntilMs = clock.monotonicMs() + holdMs;
		holdMs = Math.min(holdMs * 2, HOLD_MS_MAX);
	}

	return {
		window: () => window,
		/** Milliseconds until a line may be sent; 0 or less for now. */
		heldMs: () => holdUntilMs - clock.monotonicMs(),
		hold,
		holdFor(ms: number): void {
			holdUntilMs = clock.monotonicMs() + ms;
		},
		/** A line was answered. */
		went(): void {
			pause = null;
			holdMs = HOLD_MS_MIN;
			window = Math.min(window + 1, IN_FLIGHT_MAX);
		},
		/** Halves the limit; if a single line does not fit, the batch is paused with the reason. */
		refused({ code, message }: { code: string; message: string }, others: number): void {
			window = Math.max(1, Math.floor(others / 2));
			hold();
			if (others > 0) return;
			pause = pause?.code === code ? pause : { code, message, sinceMs: clock.wallMs() };
		},
		pause: () => pause,
	};
}
