import { beforeEach, expect, test } from "bun:test";
import type postgres from "postgres";
import { createLog, silentLog } from "../../src/base/log.ts";
import { nextTurn } from "../../src/base/time-slice.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { migrations } from "../../src/db/migrations/list.ts";
import { isConnectionLost } from "../../src/db/outage.ts";
import { atEnd } from "../support/at-end.ts";
import { withOwnedDatabase } from "./owned-database.ts";

const deps = { log: silentLog };
const names = migrations.map((migration) => migration.name);

const database = withOwnedDatabase();
let url: string;
let client: postgres.Sql;
beforeEach(() => {
	url = database.url;
	client = database.open(url);
});

test("services that start at once apply each migration once", async () => {
	expect(await migratedUrl(url)).toBeUndefined();
	const migrated = await Promise.all(Array.from({ length: 4 }, () => migrate(deps, url)));
	expect(migrated.flatMap(({ applied }) => applied)).toEqual(names);
	expect(await migratedUrl(url)).toBe(migrated[0]?.url as string);
});

test("a service's start changes nothing if a migration fails or the connection breaks", async () => {
	const broken = migrations.map((one, at) => (at === 0 ? { ...one, sql: `${one.sql}; select 1 / 0` } : one));
	await expect(migrate(deps, url, broken)).rejects.toThrow("division by zero");
	expect(await client`select to_regclass('budget') is null as nothing`).toEqual([{ nothing: true }] as never);
	const escaped: unknown[] = [];
	const note = (error: unknown) => void escaped.push(error);
	process.on("uncaughtException", note);
	atEnd(() => process.off("uncaughtException", note));
	const cut = migrations.map((one, at) =>
		at === 0 ? { ...one, sql: `${one.sql}; select pg_terminate_backend(pg_backend_pid())` } : one,
	);
	const failed = await migrate(deps, url, cut).catch((error: Error) => error);
	expect(isConnectionLost(failed)).toBe(true);
	await nextTurn();
	await nextTurn();
	expect(escaped).toEqual([]);
	expect((await migrate(deps, url)).applied).toEqual(names);
});

test("a service's start puts this version's functions first in the search path", async () => {
	await client`create function control_append(p_kind text, p_subject text, p_payload jsonb) returns bigint language sql as 'select -1::bigint'`;
	const lines: string[] = [];
	const log = createLog({ level: "info", write: (line) => lines.push(line) });
	const migrated = await migrate({ log }, url);
	await migrate({ log }, url);
	// One log line names all applied migrations; a start without migrations logs none.
	expect(lines.map((line) => JSON.parse(line))).toMatchObject([
		{ message: "the schema is up to date", migrations: names.length, last: names.at(-1) },
	]);
	const ours = database.open(migrated.url);
	// A function of a service calls other functions of the same service.
	expect(await ours`select control_append('key', 'k', '{}') as seq`).toEqual([{ seq: "1" }] as never);
	expect(await client`select control_append('key', 'k', '{}') as seq`).toEqual([{ seq: "-1" }] as never);
	// The schema of the tables contains only functions that triggers, defaults and views need.
	expect(
		await client`select count(*)::int as functions from pg_proc p join pg_namespace n on n.oid = p.pronamespace
		where n.nspname = 'public' and p.prorettype <> 'trigger'::regtype`,
	).toEqual([{ functions: 2 }] as never);
});
