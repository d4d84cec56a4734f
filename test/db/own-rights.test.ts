import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { migrations } from "../../src/db/migrations/list.ts";
import { LONG } from "../support/long-form.ts";
import { withOwnedDatabase } from "./owned-database.ts";

const deps = { log: silentLog };
const database = withOwnedDatabase();
const { open } = database;

const more = [...migrations, { name: "9999_more", sql: "create table more ()" }];

/** Creates a role that may use every table but owns none. */
async function user() {
	await migrate(deps, database.url);
	const role = await database.role();
	await open(database.url).unsafe(`grant all on all tables in schema public to ${role.quoted};
		grant all on all sequences in schema public to ${role.quoted}; grant usage on schema ${FUNCTION_SET} to ${role.quoted}`);
	return role;
}

test("a role without rights to create objects can start on a migrated schema", async () => {
	await migrate(deps, database.url);
	const client = open(database.url);
	const { url, quoted } = await database.role();
	await client.unsafe(`create schema authorization ${quoted}`);
	// The role's new schema precedes `public` in its search path. The start must report the missing right, not create the
	// tables there again.
	await expect(migrate(deps, url)).rejects.toThrow(`grant all on all tables in schema "public" to ${quoted}`);
	await expect(migratedUrl(url)).rejects.toThrow("another role's");
	await client.unsafe(`grant all on all tables in schema public to ${quoted}`);
	await expect(migrate(deps, url)).rejects.toThrow(`grant usage on schema ${FUNCTION_SET} to ${quoted}`);
	await expect(migratedUrl(url)).rejects.toThrow(`grant usage on schema ${FUNCTION_SET} to ${quoted}`);
	await client.unsafe(`grant usage on schema ${FUNCTION_SET} to ${quoted}`);
	await migrate(deps, url);
	const own = quoted.slice(1, -1);
	expect(await client`select from pg_tables where schemaname = ${own}`).toHaveLength(0);
});

test("an owner without the right to create tables is refused before any change", async () => {
	const { url, quoted } = await database.role();
	const client = open(database.url);
	const name = new URL(database.url).pathname.slice(1);
	await client.unsafe(`grant create on schema public to ${quoted}; grant create on database ${name} to ${quoted}`);
	await migrate(deps, url);
	await client.unsafe(`revoke create on schema public from ${quoted}`);
	await expect(migrate(deps, url, more)).rejects.toThrow(`grant create on schema "public" to ${quoted}`);
	await client.unsafe(`grant create on schema public to ${quoted}`);
	expect((await migrate(deps, url, more)).applied).toEqual(["9999_more"]);
});

test("a service's start names missing rights to call SQL functions", async () => {
	const { url, quoted } = await user();
	const client = open(database.url);
	await client.unsafe(`revoke execute on all functions in schema ${FUNCTION_SET} from public`);
	for (const start of [() => migrate(deps, url), () => migratedUrl(url)])
		await expect(start()).rejects.toThrow(`grant execute on all functions in schema ${FUNCTION_SET} to ${quoted}`);
});

test("a service's start names the remedy if row security hides the migrations", async () => {
	const { url, quoted } = await user();
	const client = open(database.url);
	await client`alter table schema_migration enable row level security`;
	await expect(migrate(deps, url)).rejects.toThrow(`alter role ${quoted} bypassrls`);
	await client.unsafe(`alter role ${quoted} bypassrls`);
	await migrate(deps, url);
});

test.skipIf(!LONG)("a service's start keeps schemas of SQL functions of other roles", async () => {
	const { url } = await user();
	const client = open(database.url);
	for (let at = 0; at < 16; at += 1) await client.unsafe(`create schema tollgate_${String(at).padStart(12, "0")}`);
	await migrate(deps, url);
	expect(await client`select from pg_namespace where nspname ~ '^tollgate_'`).toHaveLength(17);
});
