import { type Clock, withDeadline } from "./clock.ts";
import type { Log } from "./log.ts";

export type Cleanup = ReturnType<typeof createCleanup>;

/**
 * Deadline in milliseconds that all steps without an individual deadline share, so that silent connections delay no
 * step. Supervisors kill a process ten seconds after its drain, of which settlements may take two.
 */
const TOGETHER_MS = 5_000;
/** Minimum milliseconds for a step after the shared deadline, enough for a step that does not wait. */
const LEAST_MS = 200;

/** Runs a process's shutdown steps in reverse order of their registration. */
export function createCleanup({ clock, log }: { clock: Clock; log: Log }) {
	const steps: { end: () => Promise<unknown> | unknown; ownDeadlineMs: number | undefined }[] = [];
	return {
		/** Registers a step. `deadlineMs`: individual deadline of a step that takes longer than the shared one. */
		add(end: () => Promise<unknown> | unknown, deadlineMs?: number) {
			steps.push({ end, ownDeadlineMs: deadlineMs });
		},
		/** Runs each step once, one after the other, even if some of them fail. Never rejects. */
		async run() {
			let leftMs = TOGETHER_MS;
			for (const { end, ownDeadlineMs } of steps.splice(0).reverse()) {
				const deadlineMs = ownDeadlineMs ?? Math.max(leftMs, LEAST_MS);
				const beganMs = clock.monotonicMs();
				try {
					const late = () => new Error(`stopping took longer than ${Math.ceil(deadlineMs)} ms`);
					await withDeadline(clock, Promise.resolve(end()), deadlineMs, late);
				} catch (error) {
					log.warn("a part did not stop cleanly", { error });
				}
				if (ownDeadlineMs === undefined) leftMs -= clock.monotonicMs() - beganMs;
			}
		},
	};
}
