import { beforeEach, expect, test } from "bun:test";
import type postgres from "postgres";
import { silentLog } from "../../src/base/log.ts";
import { createFunctions, FUNCTION_SET, hasFunctionSet } from "../../src/db/function-set.ts";
import { checkMigratable, migrate, migratedUrl } from "../../src/db/migrate.ts";
import { type Migration, migrations } from "../../src/db/migrations/list.ts";
import { createMigratedDatabase } from "../support/database.ts";
import { withOwnedDatabase } from "./owned-database.ts";

const deps = { log: silentLog };
const harmless: Migration = { name: "9000_harmless", sql: "create table harmless (a int)" };
const breaking: Migration = { name: "9001_breaking", sql: "create table broken (a int)", breaking: true };

const database = withOwnedDatabase(createMigratedDatabase);
let url: string;
let client: postgres.Sql;
beforeEach(() => {
	url = database.url;
	client = database.open(url);
});

test("a service's start leaves an up-to-date database unchanged", async () => {
	const laid = await functionsOf(FUNCTION_SET);
	expect((await migrate(deps, url)).applied).toEqual([]);
	expect(await functionsOf(FUNCTION_SET)).toEqual(laid);
});

test("a service's start makes no tables in the schema of its SQL functions", async () => {
	const { url: prepared } = await migrate(deps, url);
	const again = await migrate(deps, prepared);
	expect(again.applied).toEqual([]);
	expect(await migratedUrl(prepared)).toBe(again.url);
	expect([hasFunctionSet(url), hasFunctionSet(prepared), hasFunctionSet(again.url)]).toEqual([false, true, true]);
	expect(await client`select count(*)::int as tables from pg_tables where schemaname = ${FUNCTION_SET}`).toEqual([
		{ tables: 0 },
	] as never);
	expect(await migratedUrl(again.url)).toBeDefined();
});

test("a service's start accepts a database address prepared by another version", async () => {
	const theirs = `${url}?search_path=${encodeURIComponent('tollgate_0123456789ab, "$user", public')}`;
	await client`create schema tollgate_0123456789ab`;
	const migrated = await migrate(deps, theirs);
	expect([hasFunctionSet(theirs), hasFunctionSet(migrated.url)]).toEqual([false, true]);
	expect(await functionsOf("tollgate_0123456789ab")).toEqual([]);
	const ours = database.open(migrated.url);
	expect(await ours`show search_path`).toEqual([{ search_path: `${FUNCTION_SET}, public, "$user"` }] as never);
});

test("a service's start keeps the configured search path, after the functions' schema", async () => {
	await client`create schema elsewhere`;
	const migrated = await migrate(deps, `${url}?search_path=public,elsewhere`);
	const ours = database.open(migrated.url);
	expect(await ours`show search_path`).toEqual([{ search_path: `${FUNCTION_SET}, public, elsewhere` }] as never);
});

test("a service's start names the missing right to create a schema", async () => {
	const role = `reader_${crypto.randomUUID().slice(0, 8)}`;
	await client.unsafe(`drop schema ${FUNCTION_SET} cascade`);
	await client.unsafe(`create role ${role} login password 'x'; grant all on all tables in schema public to ${role}; grant create, usage on schema public to ${role};
		alter table schema_migration owner to ${role}; alter table function_set owner to ${role}`);
	const address = new URL(url);
	[address.username, address.password] = [role, "x"];
	await expect(migrate(deps, address.href)).rejects.toThrow(
		`grant create on database "${address.pathname.slice(1)}" to "${role}"`,
	);
	await client.unsafe(`drop owned by ${role}; drop role ${role}`);
});

test("a service's start never replaces SQL functions", async () => {
	const body = "returns text language sql immutable as $$ select 'as it was' $$";
	await client.unsafe(`create or replace function ${FUNCTION_SET}.usage_class(p_ending text) ${body}`);
	await migrate(deps, url);
	expect(await client.unsafe(`select ${FUNCTION_SET}.usage_class('finished') as class`)).toEqual([
		{ class: "as it was" },
	] as never);
});

test("a service's start keeps the SQL functions of the last versions that started", async () => {
	for (let at = 1; at <= 5; at++) {
		await client.unsafe(`create schema tollgate_${String(at).padStart(12, "0")}`);
		await client`insert into function_set (name, version, used_at) values (${`tollgate_${String(at).padStart(12, "0")}`}, '0', now() - ${at} * interval '1 day')`;
	}
	await client`create schema tollgate_of_somebody`;
	// Creates a function schema as another service with other tables would, and lists it.
	await client`create schema tollgate_00000000000a`;
	await createFunctions(client, "0.0.0", 3);
	const left = await client<
		{ nspname: string }[]
	>`select nspname from pg_namespace where nspname like 'tollgate%' order by 1`;
	expect(left.map((row) => row.nspname)).toEqual(
		[
			"tollgate_000000000001",
			"tollgate_000000000002",
			"tollgate_00000000000a",
			FUNCTION_SET,
			"tollgate_of_somebody",
		].sort(),
	);
	expect(await client`select count(*)::int as sets from function_set`).toEqual([{ sets: 3 }] as never);
});

test("a service's start refuses a 0.2 development database and changes nothing", async () => {
	await client`update schema_migration set name = '0000_credit' where name = '0000_baseline'`;
	const refusal = "The last commit that can is 869b8bb6";
	await expect(migrate(deps, url)).rejects.toThrow(refusal);
	await expect(checkMigratable(url)).rejects.toThrow(refusal);
	await expect(migratedUrl(url)).rejects.toThrow(refusal);
	const names = ["0000_credit", ...migrations.slice(1).map(({ name }) => name)];
	expect(await client`select name from schema_migration order by name`).toEqual(
		names.map((name) => ({ name })) as never,
	);
});

test("a service's start accepts a newer compatible schema and refuses a breaking one", async () => {
	await migrate(deps, url, [...migrations, harmless]);
	expect((await migrate(deps, url)).applied).toEqual([]);
	expect(await migratedUrl(url)).toBeDefined();
	await migrate(deps, url, [...migrations, harmless, breaking]);
	await expect(migrate(deps, url)).rejects.toThrow("its migration 9001_breaking breaks version");
	await expect(migratedUrl(url)).rejects.toThrow("its migration 9001_breaking breaks version");
	expect((await migrate(deps, url, [...migrations, harmless, breaking])).applied).toEqual([]);
});

test("a service's start refuses a breaking migration while an instance runs", async () => {
	const lives = (until: string) =>
		client`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until) values ('old', 1, 1, 'live', 1000, now() + ${until}::interval)
			on conflict (id, epoch, beat) do update set lease_until = excluded.lease_until`;
	await lives("1 minute");
	await expect(migrate(deps, url, [...migrations, breaking])).rejects.toThrow("stop all instances first (old)");
	expect(await client`select to_regclass('broken') is null as nothing`).toEqual([{ nothing: true }] as never);
	await lives("-1 second");
	expect((await migrate(deps, url, [...migrations, breaking])).applied).toEqual([breaking.name]);
});

async function functionsOf(schema: string): Promise<object[]> {
	return [
		...(await client`
			select p.oid, p.xmin, p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
			where n.nspname = ${schema} order by p.oid`),
	];
}
