/** Cost of SQL statements in Postgres's own counts, which do not depend on other load: pages, rows and log bytes. */
import type postgres from "postgres";

/** Cost of one piece of work. Counts are Postgres's; times are Postgres's and the caller's. */
export interface Cost {
	readonly ms: number;
	readonly statements: number;
	/** Pages of 8 KB that the statements read, from memory or from disk. */
	readonly pages: number;
	readonly walBytes: number;
}

export type Counter = Awaited<ReturnType<typeof createCounter>>;

/** Creates a counter. Postgres needs `pg_stat_statements`, and `sql` must send no other statements while it counts. */
export async function createCounter(sql: postgres.Sql) {
	await sql`create extension if not exists pg_stat_statements`;
	return {
		/** Runs `work` and returns the cost of this database's statements during it, divided by `per`. */
		async cost(work: () => Promise<unknown>, per = 1): Promise<Cost> {
			await sql`select pg_stat_statements_reset()`;
			const startedMs = performance.now();
			await work();
			const ms = performance.now() - startedMs;
			const [row] = await sql<{ calls: number; pages: number; wal: number }[]>`
				select sum(calls)::float8 as calls, sum(shared_blks_hit + shared_blks_read)::float8 as pages, sum(wal_bytes)::float8 as wal
				from pg_stat_statements where toplevel and query not like '%pg_stat_statements%' and query not like '%instance_renew%'`;
			return {
				ms: ms / per,
				statements: (row?.calls ?? 0) / per,
				pages: (row?.pages ?? 0) / per,
				walBytes: (row?.wal ?? 0) / per,
			};
		},
	};
}
