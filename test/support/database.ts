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

/** Creates a database for all tests of a file: await it at the top; it is dropped after the last test. */
export async function withDatabase(): Promise<TestDatabase> {
	const database = await createTestDatabase();
	atEnd(() => database.drop());
	return database;
}

/** Creates an empty database without the service's functions; returns its URL. */
export async function createEmptyDatabase(): Promise<{ readonly url: string; drop(): Promise<void> }> {
	const server = await testPostgres();
	const name = uniqueName("test_empty");
	await server.asAdmin(`create database ${name}`);
	return { url: server.urlOf(name), drop: () => server.asAdmin(`drop database if exists ${name} with (force)`) };
}

export async function createMigratedDatabase(): Promise<{ readonly url: string; drop(): Promise<void> }> {
	const server = await testPostgres();
	const name = uniqueName("test");
	// A file copy is cheaper than a copy through the write-ahead log, because the files are in memory.
	await server.asAdmin(`create database ${name} template ${server.template} strategy file_copy`);
	return { url: server.urlOf(name), drop: () => server.asAdmin(`drop database if exists ${name} with (force)`) };
}

/** Creates a migrated database: a clone of the template, which takes 20 ms of processor time. */
export async function createTestDatabase(): Promise<TestDatabase> {
	const { url: address, drop } = await createMigratedDatabase();
	ofClones ??= (await preparedUrl(address)).slice(address.length);
	return clientsOf(`${address}${ofClones}`, drop);
}

/** URL parameters of cloned databases; read from the first clone, because they are equal for all clones. */
let ofClones: string | undefined;

async function preparedUrl(address: string): Promise<string> {
	const url = await migratedUrl(address);
	assert(url !== undefined, "the database is migrated");
	return url;
}

export async function testDatabaseAt(address: string): Promise<TestDatabase> {
	return clientsOf(await preparedUrl(address), async () => {});
}

/** Clients of a test database; calls `ended` once all clients have ended. */
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

/** Runs `work` in a transaction that is then rolled back. `work` gets statements like the product's. */
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
