import type { Clock } from "../base/clock.ts";
import type { Statements } from "../db/statements.ts";

/** Rows per statement: some tens of milliseconds. */
const STEP_ROWS = 2_000;
/** Longest duration of a call; the next one continues. */
const RUN_MS = 2_000;

export interface SealDeps {
	readonly statements: Statements;
	readonly clock: Clock;
}

/**
 * Seals days that are over, in bounded steps: an interrupted run continues later, and one process at a time does it.
 * Returns how many days were sealed.
 */
export async function sealDays({ statements, clock }: SealDeps): Promise<number> {
	const until = clock.monotonicMs() + RUN_MS;
	let days = 0;
	do {
		const [row] = await statements<{ state: "more" | "sealed" | "idle" | "busy" }>`
			select state from books_seal(${STEP_ROWS}::integer)`;
		if (row?.state === "sealed") {
			days++;
			await sealLeases(statements);
		} else if (row?.state !== "more") break;
	} while (clock.monotonicMs() < until);
	return days;
}

/** The run after the next day completes what an interrupted one left. */
async function sealLeases(statements: Statements): Promise<void> {
	for (let sealed = STEP_ROWS; sealed === STEP_ROWS; ) {
		const [row] = await statements<{ sealed: number }>`select books_seal_leases(${STEP_ROWS}::integer) as sealed`;
		sealed = row?.sealed ?? 0;
	}
}

/**
 * Reads about `rowsMax` rows of sealed days again, continuing from the last call. The next check of the books reports
 * rows that differ from their seal. Returns the number of rows read.
 */
export async function verifyDays({ statements, clock }: SealDeps, rowsMax: number): Promise<number> {
	const until = clock.monotonicMs() + RUN_MS;
	let rows = 0;
	while (rows < rowsMax && clock.monotonicMs() < until) {
		const [row] = await statements<{ state: "more" | "rest" | "busy"; seen: string }>`
			select state, seen from books_verify(${Math.min(STEP_ROWS, rowsMax - rows)}::integer)`;
		rows += Number(row?.seen ?? 0);
		if (row?.state !== "more") break;
	}
	return rows;
}
