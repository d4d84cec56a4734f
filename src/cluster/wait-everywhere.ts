import type { Clock } from "../base/clock.ts";
import type { Statements } from "../db/statements.ts";
import type { FenceResult } from "./fence.ts";
import { pendingInstances, waitApplied } from "./fence.ts";

/** An instance closes its gate before its lease ends by its own clock; this covers a clock that runs slower. */
const GRACE_MS = 1_000;

/** How far a change has spread that somebody waited for. */
export interface Everywhere extends FenceResult {
	/** Where it is not effective yet: when it is at the latest, by the database's clock. */
	readonly effectiveByMs: number | null;
}

/** Waits until every live instance acts by control entry `seq`, or its lease is over; at most until the deadline. */
export async function waitEverywhere(
	deps: { statements: Statements; clock: Clock },
	seq: number,
	deadlineMs: number,
): Promise<Everywhere> {
	const pending = pendingInstances(deps.statements);
	const result = await waitApplied({ pending, clock: deps.clock }, seq, { deadlineMs, graceMs: GRACE_MS });
	const last = Math.max(0, ...result.pending.map(({ leaseUntilMs }) => leaseUntilMs));
	return {
		...result,
		elapsedMs: Math.round(result.elapsedMs * 10) / 10,
		effectiveByMs: result.effective ? null : last + GRACE_MS,
	};
}
