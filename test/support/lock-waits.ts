import type postgres from "postgres";

/**
 * How many statements of this database wait for a lock; with `query`, of those like it. Other files' databases stand on the same
 * server and have waits of their own. Asked outside of the transaction that holds the lock: within one the first answer stays.
 */
export async function lockWaits(sql: postgres.Sql, query = "%"): Promise<number> {
	const [row] = await sql<{ waits: number }[]>`
		select count(*)::int as waits from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock' and query like ${query} and pid <> pg_backend_pid()`;
	return row?.waits ?? 0;
}
