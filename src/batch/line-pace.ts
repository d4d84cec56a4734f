import type { Clock } from "../base/clock.ts";
import type { BatchPause } from "./batch-record.ts";

/** Lines of one batch that are under way at once, in one instance. */
const IN_FLIGHT_MAX = 32;
const HOLD_MS_MIN = 250;
const HOLD_MS_MAX = 15_000;

/** How many lines of a batch may be under way at once, and from when on: fewer and later while what they ask for does not fit. */
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
		/** None is sent for so long; not above 0 if one may be sent now. */
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
		/** Fewer at once; and if even a single one does not fit, the batch waits and says why. */
		refused({ code, message }: { code: string; message: string }, others: number): void {
			window = Math.max(1, Math.floor(others / 2));
			hold();
			if (others > 0) return;
			pause = pause?.code === code ? pause : { code, message, sinceMs: clock.wallMs() };
		},
		/** Why it waits. */
		pause: () => pause,
	};
}
