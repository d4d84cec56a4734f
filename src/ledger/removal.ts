import type { Statements } from "../db/statements.ts";
import { runSteps, type SealDeps, STEP_ROWS } from "./seals.ts";

/**
 * Deletes settled requests of sealed days that ended more than `days` ago; with `archived`, only of archived days.
 * Works in bounded, resumable steps, in one process at a time. Returns the number of deleted requests.
 */
export function removeUsage({ statements, clock }: SealDeps, days: number, archived: boolean): Promise<number> {
	return runSteps(clock, async () => {
		const [row] = await statements<{ state: "more" | "idle" | "busy"; removed: string }>`
			select state, removed from removal_usage(${days}::integer, ${archived}::boolean, ${STEP_ROWS}::integer)`;
		return { count: Number(row?.removed ?? 0), more: row?.state === "more" };
	});
}

interface RemovedRow {
	readonly removed: string | null;
	/** Number of rows examined; if absent, all examined rows were removed. */
	readonly seen?: string | null;
}

const removeRows = ({ clock }: SealDeps, step: () => Promise<readonly RemovedRow[]>) =>
	runSteps(clock, async () => {
		const [row] = await step();
		return { count: Number(row?.removed ?? 0), more: Number(row?.seen ?? row?.removed ?? 0) === STEP_ROWS };
	});

/** Deletes leases, lease operations and epochs of ended instances that no check needs. Returns the number of rows. */
export async function removeLeases(deps: SealDeps, days: number): Promise<number> {
	const { statements } = deps;
	const steps: readonly (() => Promise<RemovedRow[]>)[] = [
		() => statements`select seen, removed from removal_operations(${days}::integer, ${STEP_ROWS}::integer)`,
		() => statements`select removal_leases(${days}::integer, ${STEP_ROWS}::integer) as removed`,
		() => statements`select removal_epochs(${days}::integer, ${STEP_ROWS}::integer) as removed`,
	];
	let removed = 0;
	for (const step of steps) removed += await removeRows(deps, step);
	return removed;
}

/** Deletes control entries that all instances have applied. Returns the number of entries. */
export function removeControl(deps: SealDeps, days: number): Promise<number> {
	return removeRows(
		deps,
		() => deps.statements`select removal_control(${days}::integer, ${STEP_ROWS}::integer) as removed`,
	);
}

/** Number of settlements that came too late to be charged, in epochs that had such a settlement within the last day. */
export async function countRefusedSettlements(statements: Statements): Promise<number> {
	const [row] = await statements<{ count: string }>`
		select coalesce(sum(requests), 0) as count from refused_settlement where at > now() - interval '1 day'`;
	return Number(row?.count);
}
