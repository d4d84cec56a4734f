import { describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { checkMigratable, migrate, migratedUrl } from "../../src/db/migrate.ts";
import { migrations } from "../../src/db/migrations/list.ts";
import { withOwnedDatabase } from "./owned-database.ts";

const deps = { log: silentLog };
const database = withOwnedDatabase();
const { open, set } = database;

describe("a start says what to do where it may not write", () => {
	test("since transactions are read-only", async () => {
		await set("default_transaction_read_only = on");
		await expect(migrate(deps, database.url)).rejects.toThrow("set default_transaction_read_only = off`");
	});

	test("since no schema of the path is there", async () => {
		await set("search_path = nowhere");
		await expect(migrate(deps, database.url)).rejects.toThrow("No schema of the search_path is there");
	});
});

test("the deadlines of a role are not those of a migration", async () => {
	await set("statement_timeout = '1s'", "idle_in_transaction_session_timeout = '1ms'");
	await migrate(deps, database.url, [
		...migrations,
		{ name: "9999_slow", sql: "create table slow (); select pg_sleep(1.2)" },
	]);
	expect(await open(database.url)`select from slow`).toHaveLength(0);
});

test("nor are they those of a command's first look, which waits for whoever changes a table", async () => {
	const { url } = await migrate(deps, database.url);
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

test("tables lie in the first schema of the path, and what another service has in public is none of theirs", async () => {
	await migrate(deps, database.url);
	await open(database.url)`create schema second`;
	await set("search_path = second");
	const { url } = await migrate(deps, database.url);
	const foreign = await open(url)`
		select conname from pg_constraint c join pg_class t on t.oid = c.confrelid
		where c.contype = 'f' and c.connamespace = 'second'::regnamespace and t.relnamespace <> 'second'::regnamespace`;
	expect(foreign).toHaveLength(0);
	expect(await open(url)`select from second.account`).toHaveLength(0);
});

test("new tables lie beside those that are there, though a schema that came later is before them on the path", async () => {
	await migrate(deps, database.url);
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

test.each(["a,b", "a, b", 'A "b"', "it's"])("tables lie in a schema named %s", async (name) => {
	const client = open(database.url);
	const quoted = `"${name.replaceAll('"', '""')}"`;
	await client.unsafe(`create schema ${quoted}`);
	await set(`search_path = ${quoted}`);
	const { url } = await migrate(deps, database.url);
	const [row] = await open(
		url,
	)`select relnamespace::regnamespace::text as schema from pg_class where oid = 'account'::regclass`;
	expect(row?.schema).toBe(quoted);
});

test("what lies before our tables on the path, with their names, hides none of them, now or later", async () => {
	await migrate(deps, database.url);
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

test.each([
	["table api_key (version int)", "api_key"],
	["table schema_migration (version int)", "schema_migration"],
	["type batch as enum ('version')", "batch"],
	["domain member as int", "member"],
	["type project as (version int)", "project"],
])("beside another program's %s nothing is made", async (what, name) => {
	const client = open(database.url);
	await client.unsafe(`create ${what}`);
	const made = () => client`select oid from pg_class where relnamespace = 'public'::regnamespace`;
	const before = await made();
	for (const start of [() => migrate(deps, database.url), () => checkMigratable(database.url)])
		await expect(start()).rejects.toThrow(`another program with names of ours (${name}): \`create schema tollgate\``);
	expect(await made()).toEqual(before);
	const columns = await client`
		select from pg_attribute join pg_class c on c.oid = attrelid
		where relnamespace = 'public'::regnamespace and attnum > 0`;
	expect(columns).toHaveLength(before.length);
	await client`create schema tollgate`;
	await set("search_path = tollgate");
	await migrate(deps, database.url);
});

test.each(["pg_temp, public", "pg_catalog, public", "information_schema, public"])(
	"tables lie where they stay under the path %s",
	async (path) => {
		await set(`search_path = ${path}`);
		const { url } = await migrate(deps, database.url);
		const [row] = await open(
			url,
		)`select relnamespace::regnamespace::text as schema from pg_class where relname = 'account'`;
		expect(row?.schema).toBe("public");
	},
);

test("a path that was lost with what was set for a role makes no second set", async () => {
	await open(database.url)`create schema books`;
	await set("search_path = books");
	await migrate(deps, database.url);
	await open(database.url).unsafe(`alter database ${new URL(database.url).pathname.slice(1)} reset search_path`);
	await expect(migrate(deps, database.url)).rejects.toThrow('set search_path = "books"`');
	// Who wants one says so.
	await set("search_path = public");
	expect((await migrate(deps, database.url)).applied).toHaveLength(migrations.length);
});

test("who may not look into the schema of the tables is told so, and gets no second set", async () => {
	await open(database.url)`create schema books`;
	await set('search_path = "$user", books');
	await migrate(deps, database.url);
	const { url, quoted } = await database.role('we"ird');
	const client = open(database.url);
	await client.unsafe(`create schema ${quoted} authorization ${quoted}`);
	for (const start of [() => migrate(deps, url), () => migratedUrl(url)])
		await expect(start()).rejects.toThrow(`grant usage on schema "books" to "we""ird"\`, \`grant all on all tables`);
	expect(await client`select from pg_tables where schemaname = 'we"ird'`).toHaveLength(0);
});
