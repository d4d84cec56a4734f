import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Statements } from "../db/statements.ts";

export interface PendingInstance {
	readonly id: string;
	readonly epoch: number;
	/** When its lease runs out by the database's clock, unless it renews it. */
	readonly leaseUntilMs: number;
}

export interface FenceResult {
	/** True once no instance acts by anything older than the entry. */
	readonly effective: boolean;
	readonly elapsedMs: number;
	readonly pending: readonly PendingInstance[];
}

export interface FenceOptions {
	/** Gives up after it with `effective: false`; Infinity never does. */
	deadlineMs: number;
	/** Added to a lease's end before its holder is taken for stopped. */
	graceMs: number;
}

/** How long the caller waits between two questions: a fixed share of what it has waited, so that it hears soon. */
const POLL_SHARE = 0.25;
const POLL_MS_MIN = 1;
const POLL_MS_MAX = 100;
/** The question may be asked again; if it fails this often in a row, the caller hears of it. */
const FAILURES_MAX = 10;

/**
 * Waits until each live instance has applied the control log up to `seq` or its lease is over. An instance that is
 * fenced off here is `dead`: it cannot renew, and by its own clocks it stopped admitting before its lease ended.
 */
export async function waitApplied(
	deps: { pending: (seq: number, graceMs: number) => Promise<readonly PendingInstance[]>; clock: Clock },
	seq: number,
	options: FenceOptions,
): Promise<FenceResult> {
	const startedMs = deps.clock.monotonicMs();
	let failures = 0;
	for (;;) {
		let pending: readonly PendingInstance[] | undefined;
		try {
			pending = await deps.pending(seq, options.graceMs);
			failures = 0;
		} catch (error) {
			failures += 1;
			if (failures >= FAILURES_MAX) throw error;
		}
		const elapsedMs = deps.clock.monotonicMs() - startedMs;
		if (pending?.length === 0) return { effective: true, elapsedMs, pending };
		const pollMs = pending
			? Math.min(POLL_MS_MAX, Math.max(POLL_MS_MIN, elapsedMs * POLL_SHARE))
			: // The database did not answer: it is given a second in all.
				POLL_MS_MAX;
		if (pending && elapsedMs + pollMs > options.deadlineMs) return { effective: false, elapsedMs, pending };
		await sleep(deps.clock, pollMs);
	}
}

/** Asks Postgres which live instances lag behind `seq`, fencing off those whose lease is over. */
export function pendingInstances(
	statements: Statements,
): (seq: number, graceMs: number) => Promise<readonly PendingInstance[]> {
	return async (seq, graceMs) => {
		const rows = await statements<{ id: string; epoch: number; lease_until: Date }>`
			select id, epoch, lease_until from instance_pending(${seq}, ${graceMs})`;
		return rows.map((row) => ({ id: row.id, epoch: row.epoch, leaseUntilMs: new Date(row.lease_until).getTime() }));
	};
}
