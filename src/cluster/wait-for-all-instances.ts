import type { Clock } from "../base/clock.ts";
import type { Statements } from "../db/statements.ts";
import type { AppendedEntry } from "./control-log.ts";
import type { FenceResult } from "./fence.ts";
import { FENCE_GRACE_MS, waitApplied } from "./fence.ts";
import { createPgFenceStore } from "./pg-fence-store.ts";

/** How far a change has spread that somebody waited for. */
export interface Everywhere extends Omit<FenceResult, "leftMs"> {
	/** Where it is not effective yet: when it is at the latest, by the caller's wall clock. Null if nobody can say. */
	readonly effectiveByMs: number | null;
	/**
	 * False: Postgres went away during the wait, or another server took over, which may not know the change. How far it has
	 * spread is not known, and whoever wants to be sure does it again.
	 */
	readonly known: boolean;
}

/**
 * Waits until every live instance acts by the control entry, or its lease is over; at most until the deadline. Every
 * act that takes a right away is fenced by this: the table in README.md names them.
 *
 * It never throws: the act is done by then, and its answer may hold what can be had this once, as a new secret.
 */
export async function waitForAllInstances(
	deps: { liveness: Statements; clock: Clock },
	entry: AppendedEntry,
	deadlineMs: number,
): Promise<Everywhere> {
	const { liveness, clock } = deps;
	const startedMs = clock.monotonicMs();
	const options = { deadlineMs, graceMs: FENCE_GRACE_MS };
	try {
		const result = await waitApplied({ store: createPgFenceStore(liveness), clock }, entry, options);
		const { effective, pending, leftMs } = result;
		const effectiveByMs = effective ? null : Math.round(clock.wallMs() + leftMs);
		return { effective, elapsedMs: tenths(result.elapsedMs), pending, effectiveByMs, known: true };
	} catch {
		const elapsedMs = tenths(clock.monotonicMs() - startedMs);
		return { effective: false, elapsedMs, pending: [], effectiveByMs: null, known: false };
	}
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;
