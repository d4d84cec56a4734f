import type { Statements } from "../../db/statements.ts";

/**
 * Adds usage that was settled since the last call to the hourly sums. Returns the number of rows; null if another
 * instance is doing it. The first call reads every usage row, so `statements` needs a long timeout.
 */
export async function foldUsage(statements: Statements): Promise<number | null> {
	const [row] = await statements<{ rows: string | null }>`select usage_fold() as rows`;
	return row === undefined || row.rows === null ? null : Number(row.rows);
}

export async function rebuildUsage(statements: Statements): Promise<number | null> {
	await statements`update usage_cursor set horizon = null`;
	return foldUsage(statements);
}

/** Sums old hours of the service's usage per day, which limits the number of rows. */
export async function sumUsageByDay(statements: Statements): Promise<void> {
	await statements`select usage_roll()`;
}
