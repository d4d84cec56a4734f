import { type Clock, sleep } from "../base/clock.ts";
import { createStates } from "../base/states.ts";

export interface FlushActions {
	/** Flushes once; with `withOpen` also running requests. "more": settlements remain to be sent. Never rejects. */
	flush(withOpen: boolean): Promise<"done" | "more" | "failed">;
	isFull(): boolean;
	isEmpty(): boolean;
}

type FlushState = "idle" | "soon" | "flushing" | "stopped";

const TRANSITIONS: Readonly<Record<FlushState, readonly FlushState[]>> = {
	idle: ["soon", "flushing", "stopped"],
	soon: ["flushing", "stopped"],
	flushing: ["idle", "stopped"],
	stopped: [],
};
const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 1_000;

/**
 * Decides when the writer flushes: an interval after a settlement was added, or at once if a batch is full. One flush
 * runs at a time. A failed flush is repeated after a pause that doubles up to one second.
 */
export function createFlushSchedule(clock: Clock, intervalMs: number, flushes: FlushActions) {
	const states = createStates(TRANSITIONS, "idle");
	let running: Promise<void> | undefined;
	let hurried = false;
	let cancelTimer: (() => void) | undefined;
	let retryMs = RETRY_MS_MIN;

	function flushLater(): void {
		if (cancelTimer || running || states.is("stopped")) return;
		cancelTimer = clock.after(intervalMs, hurry);
	}

	function hurry(): void {
		hurried = true;
		cancelTimer?.();
		cancelTimer = undefined;
		begin();
	}

	function begin(): void {
		if (running || states.is("stopped")) return;
		states.enter("flushing");
		running = run().finally(() => {
			running = undefined;
			if (states.is("stopped")) return;
			states.enter("idle");
			// Settlements that were added while the previous flush ran may have filled a batch.
			if (hurried || flushes.isFull()) begin();
			else if (!flushes.isEmpty()) flushLater();
		});
	}

	async function run(): Promise<void> {
		while (!states.is("stopped") && (hurried || flushes.isFull())) {
			const withOpen = hurried;
			hurried = false;
			const result = await flushes.flush(withOpen);
			if (result !== "failed") {
				hurried ||= result === "more";
				retryMs = RETRY_MS_MIN;
				continue;
			}
			if (states.is("stopped")) return;
			await sleep(clock, retryMs);
			retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
			hurried = true;
		}
	}

	return {
		/** Schedules a flush after the interval, unless an earlier one is scheduled. */
		flushLater,
		/** Flushes in the next turn of the event loop, so that the request that filled the batch is answered before. */
		flushSoon() {
			if (!states.is("idle")) return;
			states.enter("soon");
			clock.after(0, () => {
				if (states.is("soon")) begin();
			});
		},
		hurry,
		/** Resolves when the current flush has succeeded; undefined if none is in progress. */
		running: () => running,
		isStopped: () => states.is("stopped"),
		stop() {
			if (!states.is("stopped")) states.enter("stopped");
			cancelTimer?.();
		},
	};
}
