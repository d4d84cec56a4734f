/** What statements cost in counts that another load on the machine cannot change: pages, rows and log bytes, by the server's own reckoning. */
import type postgres from "postgres";

/** Of one piece of work. Times are the server's and the caller's; the rest is the server's. */
export interface Cost {
	readonly ms: number;
	/** Statements that were sent. */
	readonly statements: number;
	/** Pages of 8 KB that they looked at, in memory or not. */
	readonly pages: number;
	readonly walBytes: number;
}

export interface Counter {
	/** Runs `work` and gives what all statements of this database cost meanwhile; divided by `per` if it was many. */
	cost(work: () => Promise<unknown>, per?: number): Promise<Cost>;
}

/** The server has `pg_stat_statements` loaded, and `sql` makes no statements meanwhile. */
export async function createCounter(sql: postgres.Sql): Promise<Counter> {
	await sql`create extension if not exists pg_stat_statements`;
	return {
		async cost(work, per = 1) {
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
