import { type Clock, withDeadline } from "./clock.ts";
import type { Log } from "./log.ts";

export type Cleanup = ReturnType<typeof createCleanup>;

/**
 * Deadline of all steps without their own. Waits for silent connections must delay neither the other steps nor the
 * process: supervisors kill it ten seconds after its drain, of which settlements have used two.
 */
const TOGETHER_MS = 5_000;
/** Minimum per step once that time is used up: a step that does not wait needs less. */
const LEAST_MS = 200;

/** Runs the shutdown steps of parts in reverse order of their creation. */
export function createCleanup({ clock, log }: { clock: Clock; log: Log }) {
	const steps: { end: () => Promise<unknown> | unknown; ownDeadlineMs: number | undefined }[] = [];
	return {
		/** `deadlineMs`: an own deadline for a step that takes longer than the shared one. */
		add(end: () => Promise<unknown> | unknown, deadlineMs?: number) {
			steps.push({ end, ownDeadlineMs: deadlineMs });
		},
		/** Runs each step once, sequentially, whether or not others fail; never rejects. */
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
