import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { DatabaseTimeout, isConnectionLost, isDatabaseDown } from "../../src/db/outage.ts";
import { createTransactional } from "../../src/db/transactional.ts";
import { atEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { withDatabaseProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait.ts";

const DEADLINE_MS = 500;
const note = pgTable("note", { id: integer().primaryKey(), words: text().notNull(), at: timestamp().notNull() });
const AT = new Date("2026-01-02T03:04:05.678Z");

const server = await withDatabase();
await server.sql`create table note (id integer primary key, words text not null, at timestamp not null)`;
const { proxy, url } = withDatabaseProxy(server.url);
const db = createTransactional(
	{ clock: systemClock, log: silentLog },
	{ url, applicationName: "tx test", statementDeadlineMs: DEADLINE_MS, transactionDeadlineMs: 3 * DEADLINE_MS },
);
atEnd(() => db.end());

const rejection = (work: PromiseLike<unknown>) =>
	Promise.resolve(work).then(
		() => {
			throw new Error("it was not rejected");
		},
		(error: unknown) => error,
	);

test("a statement on a silent connection times out; the following statement succeeds", async () => {
	await db.tx.insert(note).values({ id: 1, words: "one", at: AT });
	const rows = await db.tx.select().from(note);
	expect(rows).toEqual([{ id: 1, words: "one", at: AT }]);
	proxy.freezeExisting();
	const error = await rejection(db.tx.select().from(note));
	expect((error as Error).cause).toBeInstanceOf(DatabaseTimeout);
	expect(isDatabaseDown(error)).toBe(true);
	expect(await db.tx.select().from(note)).toEqual(rows);
});

test("a transaction whose connection goes silent is rolled back", async () => {
	const error = await rejection(
		db.tx.transaction(async (tx) => {
			await tx.insert(note).values({ id: 2, words: "two", at: AT });
			proxy.freezeExisting();
			await tx.insert(note).values({ id: 3, words: "three", at: AT });
		}),
	);
	expect(error).toBeInstanceOf(DatabaseTimeout);
	expect(await db.tx.select({ id: note.id }).from(note)).toEqual([{ id: 1 }]);
});

test("a transaction whose session is terminated fails and leaves nothing", async () => {
	// A new row each time: the server still executes the previous transaction, which locks its row.
	let id = 100;
	const cuts = (swallow: boolean, where: "in a statement" | "between two") =>
		db.tx.transaction(async (tx) => {
			id += 1;
			await tx.insert(note).values({ id, words: "cut off", at: AT });
			if (where === "between two") {
				const [own] = await tx.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
				proxy.reset();
				const alive = () => server.sql`select 1 from pg_stat_activity where pid = ${own?.pid ?? 0}`;
				await waitFor(async () => (await alive()).length === 0, "the server to see the cut");
			} else setTimeout(() => proxy.reset(), 20);
			const sleeping = tx.execute(sql`select pg_sleep(2)`);
			await (swallow ? sleeping.catch(() => {}) : sleeping);
			await tx.insert(note).values({ id: 10, words: "ten", at: AT });
		});
	for (const where of ["in a statement", "between two"] as const)
		for (const swallow of [false, true]) expect(isDatabaseDown(await rejection(cuts(swallow, where)))).toBe(true);
	// Terminates the server's session in the middle of a nested transaction.
	const ended = db.tx.transaction((tx) =>
		tx.transaction(async (inner) => {
			await inner.execute(sql`select pg_terminate_backend(pg_backend_pid())`);
		}),
	);
	expect(isDatabaseDown(await rejection(ended))).toBe(true);
	await waitFor(async () => (await db.tx.execute(sql`select 1`).catch(() => [])).length === 1, "a new connection");
	expect(await db.tx.select({ id: note.id }).from(note)).toEqual([{ id: 1 }]);
});

test("a failed transaction is rolled back and rejects with its own error", async () => {
	const own = new Error("changed my mind");
	const error = await rejection(
		db.tx.transaction(async (tx) => {
			await tx.insert(note).values({ id: 11, words: "eleven", at: AT });
			throw own;
		}),
	);
	expect(error).toBe(own);
	expect(await db.tx.select({ id: note.id }).from(note)).toEqual([{ id: 1 }]);
});

test("transactions succeed again after the server ended their connection", async () => {
	const { tx, end } = createTransactional(
		{ clock: systemClock, log: silentLog },
		{ url: server.url, applicationName: "ended", statementDeadlineMs: 30_000, transactionDeadlineMs: 30_000 },
	);
	const sleeps = () => tx.execute(sql`select pg_sleep(30) as ended`);
	const all = [sleeps(), sleeps(), tx.transaction((inner) => inner.execute(sql`select pg_sleep(30) as ended`))];
	const errors = Promise.all(all.map(rejection));
	const sleeping = () => server.sql<{ pid: number }[]>`
		select pid from pg_stat_activity where application_name = 'ended' and wait_event = 'PgSleep'`;
	await waitFor(async () => (await sleeping()).length === all.length, "all to sleep");
	for (const { pid } of await sleeping()) await server.sql`select pg_terminate_backend(${pid})`;
	for (const error of await errors) expect(isConnectionLost(error)).toBe(true);
	const one = sql`select 1 as one`;
	const later = [1, 2, 3].flatMap(() => [tx.execute(one), tx.transaction((inner) => inner.execute(one))]);
	for (const rows of await Promise.all(later)) expect([...rows]).toEqual([{ one: 1 }]);
	await end();
});

test("a transaction commits although a concurrent statement times out", async () => {
	const late = Promise.withResolvers<void>();
	const slow = db.tx.transaction(async (tx) => {
		await tx.insert(note).values({ id: 4, words: "four", at: AT });
		await late.promise;
		await tx.insert(note).values({ id: 5, words: "five", at: AT });
	});
	await waitFor(async () => (await db.tx.execute(sql`select 1`)).length === 1, "a second connection");
	const stuck = rejection(db.tx.execute(sql`select pg_sleep(${(4 * DEADLINE_MS) / 1000})`));
	expect(isDatabaseDown(await stuck)).toBe(true);
	late.resolve();
	await slow;
	expect(await db.tx.select({ id: note.id }).from(note).where(sql`id >= 4`)).toHaveLength(2);
});

test("a failed statement leaves its database connection open", async () => {
	await db.tx.execute(sql`select 1`);
	const before = proxy.accepted();
	const error = await rejection(db.tx.execute(sql`select 1 / 0`));
	expect(((error as Error).cause as { code?: string }).code).toBe("22012");
	expect(isDatabaseDown(error)).toBe(false);
	expect(await db.tx.execute(sql`select 1 as one`)).toMatchObject([{ one: 1 }]);
	expect(proxy.accepted()).toBe(before);
});

test("isDatabaseDown recognizes errors that the statement did not cause", () => {
	const coded = (code: string) => Object.assign(new Error("x"), { code });
	const states = ["57P03", "57P01", "08006", "53300", "25006", "26000", "42P05"];
	const away = [...states, "ECONNREFUSED", "CONNECTION_CLOSED", "CONNECT_TIMEOUT"];
	const refused = ["23505", "22003", "P0001", "42P01", "40001", "57014", "ENOENT"];
	expect(away.filter((code) => !isDatabaseDown(coded(code)))).toEqual([]);
	expect(refused.filter((code) => isDatabaseDown(coded(code)))).toEqual([]);
	expect(isDatabaseDown(new Error("outer", { cause: coded("57P02") }))).toBe(true);
	expect(isDatabaseDown("57P03")).toBe(false);
});
