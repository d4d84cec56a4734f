import { type Clock, withDeadline } from "../base/clock.ts";
import { DatabaseTimeout } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import type { AppendedEntry } from "./control-log.ts";
import { FENCE_GRACE_MS, type FenceResult, waitUntilApplied } from "./fence.ts";
import { createPgFenceStore } from "./pg-fence-store.ts";

/** Milliseconds for the last query after the deadline: fencing writes, and a commit may wait for a standby. */
const ANSWER_MS_MAX = 10_000;
const late = () => new DatabaseTimeout("the database did not answer in time");

/** Whether a change was effective on all instances when the wait ended. */
export interface AppliedResult extends Omit<FenceResult, "leftMs"> {
	/** Latest time at which the change becomes effective, by the caller's clock; null if it is already, or if unknown. */
	readonly effectiveByMs: number | null;
	/**
	 * False if Postgres became unavailable, or after a failover that may have lost the change. A caller that must be sure
	 * repeats the change.
	 */
	readonly known: boolean;
}

/**
 * Waits until every live instance acts on the control entry or its lease is over, at most until the deadline. Every
 * revocation waits here (see README.md). Never throws, because the change is already made and its response may contain
 * something that exists only once, such as a secret.
 */
export async function waitForAllInstances(
	{ liveness, clock }: { liveness: Statements; clock: Clock },
	entry: AppendedEntry,
	deadlineMs: number,
): Promise<AppliedResult> {
	const startedMs = clock.monotonicMs();
	const options = { deadlineMs, graceMs: FENCE_GRACE_MS };
	try {
		const waiting = waitUntilApplied({ store: createPgFenceStore(liveness), clock }, entry, options);
		const result = await withDeadline(clock, waiting, deadlineMs + ANSWER_MS_MAX, late);
		const { effective, pending, leftMs } = result;
		const effectiveByMs = effective ? null : Math.round(clock.wallMs() + leftMs);
		return { effective, elapsedMs: tenths(result.elapsedMs), pending, effectiveByMs, known: true };
	} catch {
		const elapsedMs = tenths(clock.monotonicMs() - startedMs);
		return { effective: false, elapsedMs, pending: [], effectiveByMs: null, known: false };
	}
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;
