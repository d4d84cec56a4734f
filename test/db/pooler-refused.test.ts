import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { createLog, silentLog } from "../../src/base/log.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { createEmptyDatabase } from "../support/database.ts";
import { type FakePoolerOptions, startFakePooler } from "../support/fake-pooler.ts";

const deps = { log: silentLog };
let database: Awaited<ReturnType<typeof createEmptyDatabase>>;
let client: postgres.Sql;
let stopPooler = () => {};

beforeEach(async () => {
	database = await createEmptyDatabase();
	client = postgres(database.url, { max: 1, onnotice: () => {} });
});
afterEach(async () => {
	stopPooler();
	await client.end();
	await database.drop();
});

function pooled(options: FakePoolerOptions): string {
	const pooler = startFakePooler(database.url, options);
	stopPooler = pooler.stop;
	return pooler.url;
}

async function tables(): Promise<number> {
	const [row] = await client<{ n: number }[]>`
		select count(*)::int as n from pg_tables where schemaname !~ '^(pg_|information_schema)'`;
	return row?.n ?? -1;
}

describe("a pooler in transaction mode", () => {
	test("is refused before any change, without a remaining lock", async () => {
		const url = pooled({ byTransaction: true });
		await expect(migrate(deps, url)).rejects.toThrow("A pooler hands sessions of the database around");
		expect(await tables()).toBe(0);
		expect((await migrate(deps, database.url)).applied.length).toBeGreaterThan(0);
		expect(
			await client`select 1 from pg_locks where locktype = 'advisory' and database = (
			select oid from pg_database where datname = current_database())`,
		).toHaveLength(0);
	});

	test("is refused by commands too, and no session loses its path", async () => {
		await migrate(deps, database.url);
		const url = pooled({ byTransaction: true });
		await expect(migratedUrl(url)).rejects.toThrow("A pooler hands sessions of the database around");
		const other = postgres(url, { max: 1, onnotice: () => {} });
		const [row] = await other.unsafe("select current_setting('search_path') as path");
		expect(row?.path).toBe('"$user", public');
		await other.end();
	});
});

describe("a pooler in session mode", () => {
	test("is refused if it ignores search_path", async () => {
		const url = pooled({ overlooks: ["search_path"] });
		await expect(migrate(deps, url)).rejects.toThrow("loses its search_path");
		await expect(migratedUrl(url)).rejects.toThrow("loses its search_path");
		expect(await tables()).toBe(0);
	});

	test("is refused if it rejects startup settings, with their names", async () => {
		const url = pooled({ refuses: "lock_timeout" });
		await expect(migrate(deps, url)).rejects.toThrow(
			/\(unsupported startup parameter: lock_timeout\).*search_path, statement_timeout, lock_timeout/,
		);
		expect(await tables()).toBe(0);
	});

	test("is accepted with a warning if it ignores other settings", async () => {
		const lines: string[] = [];
		const log = createLog({ level: "warn", write: (line) => lines.push(line) });
		const way = pooled({ overlooks: ["lock_timeout", "tollgate.control_at_commit"] });
		const { url } = await migrate({ log }, way);
		expect(lines.map((line) => JSON.parse(line).settings)).toEqual([["lock_timeout", "tollgate.control_at_commit"]]);
		expect(await migratedUrl(way)).toBe(url);
		lines.length = 0;
		await migrate({ log }, database.url);
		expect(lines).toEqual([]);
	});
});
