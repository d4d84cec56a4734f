/** Tests of schemas that a user adds to the database and its search path after this service's tables. */
import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { migrations } from "../../src/db/migrations/list.ts";
import { createMigratedDatabase } from "../support/database.ts";
import { withOwnedDatabase } from "./owned-database.ts";

const deps = { log: silentLog };
const database = withOwnedDatabase(createMigratedDatabase);
const { open, set } = database;

test("a database role's short timeouts do not fail a command's first query", async () => {
	const url = (await migratedUrl(database.url)) as string;
	await set("lock_timeout = '50ms'", "statement_timeout = '5s'");
	const holder = open(url);
	const looked = await holder.begin(async (transaction) => {
		await transaction`lock table schema_migration`;
		const look = migratedUrl(database.url).then(
			() => "done",
			(error) => String(error),
		);
		const [row] = await transaction`select pg_sleep(0.5) is not null as later`;
		expect(row?.later).toBe(true);
		return { look };
	});
	expect(await looked.look).toBe("done");
});

test("a service makes its tables in the first schema, next to another service's", async () => {
	await open(database.url)`create schema second`;
	await set("search_path = second");
	const { url } = await migrate(deps, database.url);
	const foreign = await open(url)`
		select conname from pg_constraint c join pg_class t on t.oid = c.confrelid
		where c.contype = 'f' and c.connamespace = 'second'::regnamespace and t.relnamespace <> 'second'::regnamespace`;
	expect(foreign).toHaveLength(0);
	expect(await open(url)`select from second.account`).toHaveLength(0);
});

test("a service makes new tables in the schema of its existing ones", async () => {
	const client = open(database.url);
	await client`create schema later`;
	await set(`search_path = later, public`);
	const { url } = await migrate(deps, database.url, [
		...migrations,
		{ name: "9999_more", sql: "create table more ()" },
	]);
	expect(await client`select schemaname::text from pg_tables where tablename = 'more'`).toEqual([
		{ schemaname: "public" },
	] as never);
	expect(await open(url)`select from schema_migration`).toHaveLength(migrations.length + 1);
});

test("a service finds its tables although an earlier schema has the same names", async () => {
	const client = open(database.url);
	await client`create schema app`;
	await set("search_path = app, public");
	const { url } = await migrate(deps, database.url);
	await client`create table app.account (id int)`;
	await client`create table app.schema_migration (version int)`;
	for (const address of [url, (await migratedUrl(database.url)) as string]) {
		const [row] = await open(address)`select 'account'::regclass = 'public.account'::regclass as "isOurs"`;
		expect(row?.isOurs).toBe(true);
	}
});
