import { afterEach, beforeEach, expect, test } from "bun:test";
import postgres from "postgres";
import { silentLog } from "../../src/base/log.ts";
import { isMigrated, migrate } from "../../src/db/migrate.ts";
import { migrations } from "../../src/db/migrations/list.ts";
import { testPostgres, uniqueName } from "../support/postgres.ts";

let url: string;
let name: string;

async function asAdmin(statement: string): Promise<void> {
	const admin = postgres((await testPostgres()).adminUrl, { max: 1, onnotice: () => {} });
	await admin.unsafe(statement);
	await admin.end();
}

beforeEach(async () => {
	name = uniqueName("test_empty");
	url = (await testPostgres()).urlOf(name);
	await asAdmin(`create database ${name}`);
});
afterEach(() => asAdmin(`drop database ${name} with (force)`));

test("instances that boot together on an empty database apply each migration once", async () => {
	expect(await isMigrated(url)).toBe(false);
	const applied = await Promise.all(Array.from({ length: 4 }, () => migrate({ log: silentLog }, url)));
	expect(applied.flat()).toEqual(migrations.map((migration) => migration.name));
	expect(await isMigrated(url)).toBe(true);
	const client = postgres(url, { max: 1, onnotice: () => {} });
	expect(await client`select count(*)::int as rows from control_clock`).toEqual([{ rows: 1 }] as never);
	await client.end();
});

test("a migration that fails leaves nothing behind and keeps the lock from nobody", async () => {
	const client = postgres(url, { max: 1, onnotice: () => {} });
	// Stands in the way of the first migration's table of this name.
	await client`create table lease (a int)`;
	await expect(migrate({ log: silentLog }, url)).rejects.toThrow();
	expect(await client`select to_regclass('budget') is null as nothing`).toEqual([{ nothing: true }] as never);
	await client`drop table lease`;
	await client.end();
	expect(await migrate({ log: silentLog }, url)).toEqual(migrations.map((migration) => migration.name));
});

test("a database that is up to date is left as it is, but for the functions", async () => {
	await migrate({ log: silentLog }, url);
	const client = postgres(url, { max: 1, onnotice: () => {} });
	await client`update control_clock set seq = 41`;
	expect(await migrate({ log: silentLog }, url)).toEqual([]);
	expect(await client`select seq from control_clock`).toEqual([{ seq: "41" }] as never);
	await client.end();
});
