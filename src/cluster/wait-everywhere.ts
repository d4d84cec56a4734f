import type { Clock } from "../base/clock.ts";
import type { Statements } from "../db/statements.ts";
import type { FenceResult } from "./fence.ts";
import { FENCE_GRACE_MS, waitApplied } from "./fence.ts";
import { createPgFenceStore } from "./pg-fence-store.ts";

/** How far a change has spread that somebody waited for. */
export interface Everywhere extends FenceResult {
	/** Where it is not effective yet: when it is at the latest, by the caller's wall clock. */
	readonly effectiveByMs: number | null;
}

/**
 * Waits until every live instance acts by control entry `seq`, or its lease is over; at most until the deadline. Every
 * act that takes a right away is fenced by this.
 */
export async function waitEverywhere(
	deps: { liveness: Statements; clock: Clock },
	seq: number,
	deadlineMs: number,
): Promise<Everywhere> {
	const { liveness, clock } = deps;
	const options = { deadlineMs, graceMs: FENCE_GRACE_MS };
	const result = await waitApplied({ store: createPgFenceStore(liveness), clock }, seq, options);
	return {
		...result,
		elapsedMs: Math.round(result.elapsedMs * 10) / 10,
		effectiveByMs: result.effective ? null : Math.round(clock.wallMs() + result.leftMs),
	};
}
