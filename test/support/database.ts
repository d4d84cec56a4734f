import postgres from "postgres";
import { assert } from "../../src/base/assert.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createDatabase, type Database } from "../../src/db/database.ts";
import { migratedUrl } from "../../src/db/migrate.ts";
import type { Statements } from "../../src/db/statements.ts";
import { createTransactional, type Transactional } from "../../src/db/transactional.ts";
import { atEnd } from "./at-end.ts";
import { testPostgres, uniqueName } from "./postgres.ts";

export interface TestDatabase extends Database {
	readonly sql: postgres.Sql;
	readonly tx: Transactional;
	drop(): Promise<void>;
}

/** A database for all tests of a file: awaited at the top, dropped after the last test. */
export async function withDatabase(): Promise<TestDatabase> {
	const database = await createTestDatabase();
	atEnd(() => database.drop());
	return database;
}

/** The URL of an empty database without functions. */
export async function createEmptyDatabase(): Promise<{ readonly url: string; drop(): Promise<void> }> {
	const server = await testPostgres();
	const name = uniqueName("test_empty");
	await server.asAdmin(`create database ${name}`);
	return { url: server.urlOf(name), drop: () => server.asAdmin(`drop database if exists ${name} with (force)`) };
}

export async function createMigratedDatabase(): Promise<{ readonly url: string; drop(): Promise<void> }> {
	const server = await testPostgres();
	const name = uniqueName("test");
	// A file copy costs less than a copy through the log, as long as the files are in memory.
	await server.asAdmin(`create database ${name} template ${server.template} strategy file_copy`);
	return { url: server.urlOf(name), drop: () => server.asAdmin(`drop database if exists ${name} with (force)`) };
}

/** A migrated database, cloned from the template in 20 ms of processor time. */
export async function createTestDatabase(): Promise<TestDatabase> {
	const { url: address, drop } = await createMigratedDatabase();
	ofClones ??= (await preparedUrl(address)).slice(address.length);
	return clientsOf(`${address}${ofClones}`, drop);
}

/** URL parameters of all migrated databases, read from the first clone. */
let ofClones: string | undefined;

async function preparedUrl(address: string): Promise<string> {
	const url = await migratedUrl(address);
	assert(url !== undefined, "the database is migrated");
	return url;
}

export async function testDatabaseAt(address: string): Promise<TestDatabase> {
	return clientsOf(await preparedUrl(address), async () => {});
}

/** Clients of a test database; `ended` is called when all have ended. */
function clientsOf(url: string, ended: () => Promise<void>): TestDatabase {
	const database = createDatabase({ clock: systemClock, log: silentLog }, { url, applicationName: "test" });
	const transactional = createTransactional(
		{ clock: systemClock, log: silentLog },
		{ url, applicationName: "test tx", statementDeadlineMs: 10_000, transactionDeadlineMs: 30_000 },
	);
	const sql = postgres(url, { max: 2, onnotice: () => {} });
	return {
		...database,
		sql,
		tx: transactional.tx,
		async drop() {
			await Promise.all([sql.end({ timeout: 1 }), transactional.end(), database.end()]);
			await ended();
		},
	};
}

/** Runs `work` in a transaction that is rolled back; `work` gets statements in the product's form. */
export async function rolledBack(
	sql: postgres.Sql,
	work: (transaction: postgres.TransactionSql, statements: Statements) => Promise<unknown>,
): Promise<void> {
	const undo = new Error("undo");
	const all = sql.begin(async (transaction) => {
		const statements = ((...query: Parameters<typeof sql>) => transaction(...query)) as unknown as Statements;
		await work(transaction, statements);
		throw undo;
	});
	await all.catch((error) => {
		if (error !== undo) throw error;
	});
}
