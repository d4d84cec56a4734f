import { expect, test } from "bun:test";
import postgres, { type TransactionSql } from "postgres";
import { foldUsage } from "../../src/console/usage/usage-fold.ts";
import { createTestDatabase } from "../support/database.ts";
import { openTransaction } from "../support/open-transaction.ts";
import { foldAll, rebuildAllSums } from "../support/sums.ts";

/** A database whose clock the test sets: the schema `steps`, searched before pg_catalog, has a clock_timestamp(). */
async function withClock() {
	const database = await createTestDatabase();
	const { sql } = database;
	await sql`create schema steps`;
	await sql`create table steps.ahead as select interval '0' as by`;
	await sql`create function steps.clock_timestamp() returns timestamptz language sql volatile as
		$$ select pg_catalog.clock_timestamp() + a.by from steps.ahead a $$`;
	const [path] = await sql`select current_setting('search_path') as names`;
	const folds = postgres(database.url, { max: 1, onnotice: () => {} });
	await folds.unsafe(`set search_path = steps, pg_catalog, ${path?.names}`);
	const statements = Object.assign((text: TemplateStringsArray, ...values: string[]) => folds(text, ...values), {
		end: async () => {},
	}) as unknown as typeof database.statements;
	return {
		database,
		sql,
		fold: () => foldUsage(statements),
		foldAll: () => foldAll(statements),
		setAhead: (minutes: number) => sql`update steps.ahead set by = make_interval(mins => ${minutes}::integer)`,
		/** Inserts a row that is settled `ahead` minutes after the clock's present time. */
		insert: (on: typeof sql | TransactionSql, ahead = 0) => on`
			insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
				reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at, settled_at)
			values (${crypto.randomUUID()}, 'acc', 'key', 'i', 1, 'm', 'm@1', 'chat', false, 10, 10, 'exact', 'finished', 200, now(),
				now() + make_interval(mins => ${ahead}::integer))`,
		count: async () => Number((await sql`select coalesce(sum(requests), 0) as n from usage_hour`)[0]?.n),
		async end() {
			await folds.end();
			await database.drop();
		},
	};
}

test("a request committed late, or with a clock that leaps, is summed once", async () => {
	const { database, sql, fold, foldAll, setAhead, insert, count, end } = await withClock();
	try {
		await foldAll();
		const commit = await openTransaction(sql, (tx) => insert(tx));
		await setAhead(5);
		await fold();
		await setAhead(6);
		await fold();
		await commit();
		await foldAll();
		await foldAll();
		expect(await count()).toBe(1);
		await insert(sql, 6);
		await foldAll();
		expect(await count()).toBe(2);
		await rebuildAllSums(database.statements);
		expect(await count()).toBe(2);
		// Simulates a restored database, whose transaction numbers start again.
		await sql`update usage_cursor set horizon = 9000000000000`;
		await insert(sql);
		await fold();
		await foldAll();
		expect(await count()).toBe(3);
	} finally {
		await end();
	}
}, 120_000);

test("requests settled after the clock was set back are summed once", async () => {
	const { sql, fold, foldAll, setAhead, insert, count, end } = await withClock();
	try {
		await setAhead(10);
		await insert(sql, 10);
		await foldAll();
		// An open transaction keeps the transaction horizon back: rows are then summed by their age alone.
		const other = await openTransaction(sql, (tx) => tx`create table other ()`);
		await insert(sql, 2);
		await insert(sql, 10);
		await sql`update usage_cursor set folded_at = now() + interval '1 minute'`;
		await fold();
		expect(await count()).toBe(2);
		await setAhead(0);
		await insert(sql);
		await fold();
		await fold();
		await other();
		for (let again = 0; again < 3; again++) await foldAll();
		expect(await count()).toBe(4);
		await insert(sql);
		await foldAll();
		expect(await count()).toBe(5);
	} finally {
		await end();
	}
}, 120_000);
