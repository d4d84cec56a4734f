import type { Clock } from "../base/clock.ts";
import type { Statements } from "../db/statements.ts";

/** Rows that one statement reads: some tens of milliseconds. */
const STEP_ROWS = 2_000;
/** Longest that one call goes on; what it leaves is the next one's. */
const RUN_MS = 2_000;

export interface SealDeps {
	readonly statements: Statements;
	readonly clock: Clock;
}

/**
 * Seals days that are over, in steps of a bounded number of rows: who is stopped in between goes on where he was, and of
 * several at once one does it. Gives how many days were sealed.
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

/** What an interrupted run leaves is done after the next day. */
async function sealLeases(statements: Statements): Promise<void> {
	for (let sealed = STEP_ROWS; sealed === STEP_ROWS; ) {
		const [row] = await statements<{ sealed: number }>`select books_seal_leases(${STEP_ROWS}::integer) as sealed`;
		sealed = row?.sealed ?? 0;
	}
}

/**
 * Reads about so many rows of sealed days again, from where the last call stopped. What does not agree with its seal is a
 * finding of the next check of the books. Gives the rows read.
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
