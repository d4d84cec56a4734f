import { describe, expect, test } from "bun:test";
import { createLog, silentLog } from "../../src/base/log.ts";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
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

test("who may make nothing starts once somebody has brought the schema up to date for him", async () => {
	await migrate(deps, database.url);
	const client = open(database.url);
	const role = `r${crypto.randomUUID().replaceAll("-", "")}`;
	await client.unsafe(`create role ${role} login password 'p'`);
	database.atTestEnd(() => client.unsafe(`drop owned by ${role}; drop role ${role}`));
	const url = Object.assign(new URL(database.url), { username: role, password: "p" }).href;
	await client.unsafe(`create schema authorization ${role}`);
	// Its own schema is before public, and would have a second set of tables.
	await expect(migrate(deps, url)).rejects.toThrow(`grant all on all tables in schema "public" to "${role}"`);
	await expect(migratedUrl(url)).rejects.toThrow("another role's");
	await client.unsafe(`grant all on all tables in schema public to ${role}`);
	await expect(migrate(deps, url)).rejects.toThrow(`grant usage on schema ${FUNCTION_SET} to "${role}"`);
	await client.unsafe(`grant usage on schema ${FUNCTION_SET} to ${role}`);
	const warnings: { names: readonly string[] }[] = [];
	const log = createLog({ level: "warn", write: (line) => warnings.push(JSON.parse(line)) });
	await migrate({ log }, url);
	expect(warnings.flatMap(({ names }) => names)).toContain("recall_ticket");
	await client.unsafe(`grant usage on all sequences in schema public to ${role}`);
	warnings.length = 0;
	await migrate({ log }, url);
	expect(warnings).toEqual([]);
	await client.unsafe("delete from schema_migration where name = (select max(name) from schema_migration)");
	await expect(migrate(deps, url)).rejects.toThrow(`grant create on schema "public" to "${role}"`);
	expect(await client`select from pg_tables where schemaname = ${role}`).toHaveLength(0);
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
