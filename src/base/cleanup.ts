import type { Clock } from "./clock.ts";
import { withDeadline } from "./clock.ts";
import type { Log } from "./log.ts";

/** What has to be stopped at the end, in reverse order of its making. */
export interface Cleanup {
	/** `deadlineMs`: for what takes longer in order, if it is not the usual, which all others share. */
	add(end: () => Promise<unknown> | unknown, deadlineMs?: number): void;
	/** Runs each once, one after the other, whatever becomes of the others; never rejects. */
	run(): Promise<void>;
}

/**
 * Parts that wait for a silent connection, one after the other, must not keep the others from their end, nor all together the
 * process from its own: whoever waits for that kills it ten seconds behind its drain, of which settlements have had two.
 */
const TOGETHER_MS = 5_000;
/** What is left for each when that is over: what waits for nobody needs less. */
const LEAST_MS = 200;

export function createCleanup({ clock, log }: { clock: Clock; log: Log }): Cleanup {
	const steps: { end: () => Promise<unknown> | unknown; ownDeadlineMs: number | undefined }[] = [];
	return {
		add(end, deadlineMs) {
			steps.push({ end, ownDeadlineMs: deadlineMs });
		},
		async run() {
			let leftMs = TOGETHER_MS;
			for (const { end, ownDeadlineMs } of steps.splice(0).reverse()) {
				const deadlineMs = ownDeadlineMs ?? Math.max(leftMs, LEAST_MS);
				const beganMs = clock.monotonicMs();
				try {
					const late = () => new Error(`it took longer than ${Math.ceil(deadlineMs)} ms`);
					await withDeadline(clock, Promise.resolve(end()), deadlineMs, late);
				} catch (error) {
					log.warn("a part did not stop cleanly", { error });
				}
				if (ownDeadlineMs === undefined) leftMs -= clock.monotonicMs() - beganMs;
			}
		},
	};
}
