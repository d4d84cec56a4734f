import { describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { createStatements } from "../../src/db/statements.ts";
import { type FakePoolerOptions, startFakePooler } from "../support/fake-pooler.ts";
import { withOwnedDatabase } from "./owned-database.ts";

const deps = { log: silentLog };
const database = withOwnedDatabase();
const { open, set } = database;

function pooled(options: FakePoolerOptions): string {
	const pooler = startFakePooler(database.url, options);
	database.atTestEnd(pooler.stop);
	return pooler.url;
}

describe("a connection pooler in transaction mode", () => {
	test("is refused before any change and keeps no lock", async () => {
		const url = pooled({ byTransaction: true });
		await expect(migrate(deps, url)).rejects.toThrow("A pooler hands sessions of the database around");
		const client = open(database.url);
		expect(await client`select from pg_tables where schemaname !~ '^(pg_|information_schema)'`).toHaveLength(0);
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
		const [row] = await open(url).unsafe("select current_setting('search_path') as path");
		expect(row?.path).toBe('"$user", public');
	});
});

test("in session mode may drop or refuse start-up parameters", async () => {
	const overlooks = ["search_path", "statement_timeout", "lock_timeout", "tollgate.control_at_commit", "DateStyle"];
	for (const options of [{ overlooks }, { refuses: "search_path" }]) {
		await set("datestyle = 'German'");
		const { url } = await migrate(deps, pooled(options));
		const statements = createStatements(
			{ clock: systemClock, log: silentLog },
			{ url, applicationName: "pooled", connectionsMax: 1, statementDeadlineMs: 5_000 },
		);
		const [row] = await statements<{ path: string; style: string; lock: string }>`
			select current_schema() as path, current_setting('DateStyle') as style, current_setting('lock_timeout') as lock`;
		expect(row).toEqual({ path: FUNCTION_SET, style: "ISO, DMY", lock: "500ms" });
		await statements.end();
	}
});
