import type { SealDeps } from "./seals.ts";

/** Rows that one statement looks at: some tens of milliseconds. */
const STEP_ROWS = 2_000;
/** Longest that one call goes on; what it leaves is the next one's. */
const RUN_MS = 2_000;

/**
 * Removes settled requests of sealed days that were over more than `days` ago; with `archived`, of days alone whose files
 * were seen in the archive. In bounded steps: who is stopped in between goes on where he was, and of several at once one
 * does it. Gives how many were removed.
 */
export async function removeUsage({ statements, clock }: SealDeps, days: number, archived: boolean): Promise<number> {
	const until = clock.monotonicMs() + RUN_MS;
	let removed = 0;
	do {
		const [row] = await statements<{ state: "more" | "idle" | "busy"; removed: string }>`
			select state, removed from removal_usage(${days}::integer, ${archived}::boolean, ${STEP_ROWS}::integer)`;
		removed += Number(row?.removed ?? 0);
		if (row?.state !== "more") break;
	} while (clock.monotonicMs() < until);
	return removed;
}
