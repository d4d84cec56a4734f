import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { createStatements } from "../../src/db/statements.ts";
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

const nameOf = (url: string) => new URL(url).pathname.slice(1);

async function tables(): Promise<number> {
	const [row] = await client<{ n: number }[]>`
		select count(*)::int as n from pg_tables where schemaname !~ '^(pg_|information_schema)'`;
	return row?.n ?? -1;
}

describe("a connection pooler in transaction mode", () => {
	test("is refused before any change and keeps no lock", async () => {
		const url = pooled({ byTransaction: true });
		await expect(migrate(deps, url)).rejects.toThrow("A pooler hands sessions of the database around");
		expect(await tables()).toBe(0);
		expect((await migrate(deps, database.url)).applied.length).toBeGreaterThan(0);
		expect(
			await client`select 1 from pg_locks where locktype = 'advisory' and database = (
			select oid from pg_database where datname = current_database())`,
		).toHaveLength(0);
	});

	test("is refused by commands too, and changes no session's search path", async () => {
		await migrate(deps, database.url);
		const url = pooled({ byTransaction: true });
		await expect(migratedUrl(url)).rejects.toThrow("A pooler hands sessions of the database around");
		const other = postgres(url, { max: 1, onnotice: () => {} });
		const [row] = await other.unsafe("select current_setting('search_path') as path");
		expect(row?.path).toBe('"$user", public');
		await other.end();
	});
});

test("in session mode may drop or refuse start-up parameters", async () => {
	const overlooks = ["search_path", "statement_timeout", "lock_timeout", "tollgate.control_at_commit", "DateStyle"];
	for (const options of [{ overlooks }, { refuses: "search_path" }]) {
		await client.unsafe("alter database current set datestyle = 'German'".replace("current", nameOf(database.url)));
		const { url } = await migrate(deps, pooled(options));
		const statements = createStatements(
			{ clock: systemClock, log: silentLog },
			{ url, applicationName: "pooled", connectionsMax: 1, statementDeadlineMs: 5_000 },
		);
		const [row] = await statements<{ path: string; style: string; lock: string }>`
			select current_schema() as path, current_setting('DateStyle') as style, current_setting('lock_timeout') as lock`;
		expect(row).toEqual({ path: FUNCTION_SET, style: "ISO, DMY", lock: "500ms" });
		await statements.end();
		stopPooler();
	}
});
