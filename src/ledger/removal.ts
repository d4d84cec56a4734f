import type { Statements } from "../db/statements.ts";
import type { SealDeps } from "./seals.ts";

/** Rows per statement: some tens of milliseconds. */
const STEP_ROWS = 2_000;
/** Longest duration of a call; the next one continues. */
const RUN_MS = 2_000;

/**
 * Removes settled requests of sealed days that ended more than `days` ago; with `archived`, only of days whose files
 * were seen in the archive. Works in bounded steps: an interrupted run continues later, and one process at a time does
 * it. Returns how many were removed.
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

/** Removes unneeded leases, operations and epochs of ended instances. Returns the number of rows. */
export async function removeLeases(deps: SealDeps, days: number): Promise<number> {
	const { statements } = deps;
	const operations = await inSteps(
		deps,
		() => statements`select seen, removed from removal_operations(${days}::integer, ${STEP_ROWS}::integer)`,
	);
	const leases = await inSteps(
		deps,
		() => statements`select removal_leases(${days}::integer, ${STEP_ROWS}::integer) as removed`,
	);
	const epochs = await inSteps(
		deps,
		() => statements`select removal_epochs(${days}::integer, ${STEP_ROWS}::integer) as removed`,
	);
	return operations + leases + epochs;
}

/** Removes entries of the control log that all instances have applied. Returns how many. */
export function removeControl(deps: SealDeps, days: number): Promise<number> {
	return inSteps(
		deps,
		() => deps.statements`select removal_control(${days}::integer, ${STEP_ROWS}::integer) as removed`,
	);
}

/** Until a step finds less than it may look at, or the time is over. `seen` is `removed` where it is missing. */
async function inSteps({ clock }: SealDeps, step: () => Promise<readonly object[]>): Promise<number> {
	const until = clock.monotonicMs() + RUN_MS;
	let removed = 0;
	for (let seen = STEP_ROWS; seen === STEP_ROWS && clock.monotonicMs() < until; ) {
		const [row] = (await step()) as readonly { removed: string | null; seen?: string | null }[];
		removed += Number(row?.removed ?? 0);
		seen = Number(row?.seen ?? row?.removed ?? 0);
	}
	return removed;
}

/** Settlements that came too late to be charged, of epochs with such a settlement in the last day. */
export async function countRefusedSettlements(statements: Statements): Promise<number> {
	const [row] = await statements<{ count: string }>`
		select coalesce(sum(requests), 0) as count from refused_settlement where at > now() - interval '1 day'`;
	return Number(row?.count);
}
