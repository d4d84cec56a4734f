import { newId } from "../base/id.ts";
import type { Statements } from "../db/statements.ts";
import type { Check } from "./reconcile.ts";
import type { BooksHistory, BooksRun } from "./reconciler.ts";

/** A row of `reconciliation_run`. */
export interface BooksRow {
	readonly id: string;
	readonly at: Date;
	readonly ok: boolean;
	readonly by: string;
	readonly checks: readonly Check[];
}

/** Stores the checks of the books made by all processes. */
export function createBooksHistory(statements: Statements): BooksHistory {
	return {
		async add({ ok, checks }, by) {
			const [row] = await statements<BooksRow>`
				insert into reconciliation_run (id, ok, by, checks) values (${newId("rec")}, ${ok}, ${by}, ${JSON.stringify(checks)}::text::jsonb)
				returning id, at, ok, by, checks`;
			if (row === undefined) throw new Error("an inserted row is returned");
			return booksRunOf(row);
		},
		async newest(withinMs) {
			// A run dated in the future was made before the clock was set back; it would suppress checks until then.
			const [row] = await statements<BooksRow>`
				select id, at, ok, by, checks from reconciliation_run
				where at > clock_timestamp() - make_interval(secs => ${withinMs / 1000}::double precision) and at <= clock_timestamp()
				order by id desc limit 1`;
			return row === undefined ? undefined : booksRunOf(row);
		},
	};
}

/** The newest check of the books, and its age by the clock that dated it. */
export async function lastBooksCheck(statements: Statements): Promise<{ ok: boolean; ageMs: number } | undefined> {
	const [row] = await statements<{ ok: boolean; ageMs: number }>`
		select ok, extract(epoch from clock_timestamp() - at)::double precision * 1000 as "ageMs"
		from reconciliation_run where at <= clock_timestamp() order by id desc limit 1`;
	return row;
}

export function booksRunOf(row: BooksRow): BooksRun {
	return { id: row.id, atMs: row.at.getTime(), ok: row.ok, by: row.by, checks: row.checks };
}

const KEPT_DAYS = 400;
const FORGET_ROWS = 1_000;

/** Deletes runs older than 400 days, except the one since which all runs were good. Looks at 1,000 runs at most. */
export async function forgetOldRuns(statements: Statements): Promise<void> {
	await statements`
		delete from reconciliation_run r using (
			select o.id, o.at from reconciliation_run o order by o.id limit ${FORGET_ROWS}::integer
		) old
		where r.id = old.id and old.at < clock_timestamp() - make_interval(days => ${KEPT_DAYS}::integer) and r.id is distinct from (
			select g.id from reconciliation_run g
			where g.ok and g.id > coalesce((select max(b.id) from reconciliation_run b where not b.ok), '') order by g.id limit 1)`;
}
