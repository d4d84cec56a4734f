import type { Statements } from "../../db/statements.ts";

/**
 * Adds what was settled since the last time to the sums by hour. Gives the number of rows; null if another instance is
 * at it. The first time it reads every row there is, so `statements` needs time.
 */
export async function foldUsage(statements: Statements): Promise<number | null> {
	const [row] = await statements<{ rows: string | null }>`select usage_fold() as rows`;
	return row === undefined || row.rows === null ? null : Number(row.rows);
}

/** Throws the sums away and makes them anew from all usage rows. */
export async function rebuildUsage(statements: Statements): Promise<number | null> {
	await statements`update usage_cursor set horizon = null`;
	return foldUsage(statements);
}
