import type postgres from "postgres";

/**
 * Returns how many statements of this database wait for a lock; with `query`, only statements like it. Call it outside
 * the transaction that holds the lock, because there the first result would be repeated.
 */
export async function lockWaits(sql: postgres.Sql, query = "%"): Promise<number> {
	const [row] = await sql<{ waits: number }[]>`
		select count(*)::int as waits from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock' and query like ${query} and pid <> pg_backend_pid()`;
	return row?.waits ?? 0;
}
