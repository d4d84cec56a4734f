import { sql } from "drizzle-orm";
import type { Transactional } from "../db/database.ts";

/** Adds what was settled since the last time to the sums by hour. Gives the number of rows; null if another instance is at it. */
export async function foldUsage(tx: Transactional): Promise<number | null> {
	const [row] = (await tx.execute(sql`select usage_fold() as rows`)) as unknown as { rows: string | null }[];
	return row === undefined || row.rows === null ? null : Number(row.rows);
}

/** Throws the sums away and makes them anew from all usage rows. */
export async function rebuildUsage(tx: Transactional): Promise<number | null> {
	await tx.execute(sql`update usage_cursor set horizon = null`);
	return foldUsage(tx);
}
