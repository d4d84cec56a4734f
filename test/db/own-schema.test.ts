import { describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { migrations } from "../../src/db/migrations/list.ts";
import { LONG } from "../support/long-form.ts";
import { withOwnedDatabase } from "./owned-database.ts";

const deps = { log: silentLog };
const database = withOwnedDatabase();
const { open, set } = database;

describe("a service's start without write access", () => {
	test("names the remedy for read-only transactions", async () => {
		await set("default_transaction_read_only = on");
		await expect(migrate(deps, database.url)).rejects.toThrow("set default_transaction_read_only = off`");
	});

	test("names the remedy if no schema in the search path exists", async () => {
		await set("search_path = nowhere");
		await expect(migrate(deps, database.url)).rejects.toThrow("No schema of the search_path is there");
	});
});

test("a database role's short timeouts do not apply to migrations", async () => {
	await set("statement_timeout = '1s'", "idle_in_transaction_session_timeout = '1ms'");
	await migrate(deps, database.url, [
		...migrations,
		{ name: "9999_slow", sql: "create table slow (); select pg_sleep(1.2)" },
	]);
	expect(await open(database.url)`select from slow`).toHaveLength(0);
});

test.each(LONG ? ["a,b", "a, b", 'A "b"', "it's"] : [`A, "b",it's`])(
	"a service's start makes its tables in a schema named %s",
	async (name) => {
		const client = open(database.url);
		const quoted = `"${name.replaceAll('"', '""')}"`;
		await client.unsafe(`create schema ${quoted}`);
		await set(`search_path = ${quoted}`);
		const { url } = await migrate(deps, database.url);
		const [row] = await open(
			url,
		)`select relnamespace::regnamespace::text as schema from pg_class where oid = 'account'::regclass`;
		expect(row?.schema).toBe(quoted);
	},
);

test.each(
	LONG
		? ["pg_temp, public", "pg_catalog, public", "information_schema, public"]
		: ["pg_temp, pg_catalog, information_schema, public"],
)("a service's start makes its tables in the permanent schema of the path %s", async (path) => {
	await set(`search_path = ${path}`);
	const { url } = await migrate(deps, database.url);
	const [row] = await open(
		url,
	)`select relnamespace::regnamespace::text as schema from pg_class where relname = 'account'`;
	expect(row?.schema).toBe("public");
});

test("a service's start after a lost search_path makes no second set of tables", async () => {
	await open(database.url)`create schema books`;
	await set("search_path = books");
	await migrate(deps, database.url);
	await open(database.url).unsafe(`alter database ${new URL(database.url).pathname.slice(1)} reset search_path`);
	await expect(migrate(deps, database.url)).rejects.toThrow('set search_path = "books"`');
	await set("search_path = public");
	expect((await migrate(deps, database.url)).applied).toHaveLength(migrations.length);
});

test("a service's start without rights on its schema makes no second set of tables", async () => {
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
