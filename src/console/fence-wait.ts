import type { Clock } from "../base/clock.ts";
import { pendingInstances, waitApplied } from "../cluster/fence.ts";
import type { Statements } from "../db/statements.ts";
import type { Connection } from "../gateway/exchange.ts";
import { IDLE_TIMEOUT_S } from "../gateway/exchange.ts";

/** What a page says of a change: since when no instance acts by anything older. */
export interface Fence {
	readonly effective: boolean;
	readonly elapsedMs: number;
	readonly atMs: number;
	/** Where it is not effective yet: when it is at the latest. */
	readonly effectiveByMs: number | null;
	readonly pendingInstances: number;
}

/** An instance closes its gate before its lease ends by its own clock; this covers a clock that runs slower. */
const GRACE_MS = 1_000;
/** The usual lease is half a minute. A page does not wait longer than this; the change takes effect all the same. */
const DEADLINE_MS = 45_000;
const SILENCE_S = 60;

/** Waits until every live instance acts by control entry `seq`, or its lease is over. */
export async function waitEverywhere(
	deps: { statements: Statements; clock: Clock },
	connection: Connection,
	seq: number,
): Promise<Fence> {
	connection.setIdleTimeout(SILENCE_S);
	try {
		const pending = pendingInstances(deps.statements);
		const result = await waitApplied({ pending, clock: deps.clock }, seq, {
			deadlineMs: DEADLINE_MS,
			graceMs: GRACE_MS,
		});
		const last = Math.max(0, ...result.pending.map(({ leaseUntilMs }) => leaseUntilMs));
		return {
			effective: result.effective,
			elapsedMs: Math.round(result.elapsedMs * 10) / 10,
			atMs: deps.clock.wallMs(),
			effectiveByMs: result.effective ? null : last + GRACE_MS,
			pendingInstances: result.pending.length,
		};
	} finally {
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
	}
}
