import type { Clock } from "./clock.ts";
import { withDeadline } from "./clock.ts";
import type { Log } from "./log.ts";

/** What has to be stopped at the end, in reverse order of its making. */
export interface Cleanup {
	/** `deadlineMs`: for what takes longer in order, if it is not the usual. */
	add(end: () => Promise<unknown> | unknown, deadlineMs?: number): void;
	/** Runs each once, one after the other, whatever becomes of the others; never rejects. */
	run(): Promise<void>;
}

/** One part that waits for a silent connection must not keep the others from their end. */
const DEADLINE_MS = 5_000;

export function createCleanup({ clock, log }: { clock: Clock; log: Log }): Cleanup {
	const steps: { end: () => Promise<unknown> | unknown; deadlineMs: number }[] = [];
	return {
		add(end, deadlineMs = DEADLINE_MS) {
			steps.push({ end, deadlineMs });
		},
		async run() {
			for (const { end, deadlineMs } of steps.splice(0).reverse()) {
				try {
					const late = () => new Error(`it took longer than ${deadlineMs} ms`);
					await withDeadline(clock, Promise.resolve(end()), deadlineMs, late);
				} catch (error) {
					log.warn("a part did not stop cleanly", { error });
				}
			}
		},
	};
}
