import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { silentLog } from "../../src/base/log.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { createEmptyDatabase } from "../support/database.ts";
import { startFakePooler } from "../support/fake-pooler.ts";

const deps = { log: silentLog };
let database: Awaited<ReturnType<typeof createEmptyDatabase>>;
const ended: (() => unknown)[] = [];

beforeEach(async () => {
	database = await createEmptyDatabase();
});
afterEach(async () => {
	for (const end of ended.splice(0)) await end();
	await database.drop();
});

function open(url: string): postgres.Sql {
	const client = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false });
	ended.push(() => client.end());
	return client;
}

/** As its owner may have set the database for others. */
async function set(...settings: readonly string[]): Promise<void> {
	const name = new URL(database.url).pathname.slice(1);
	for (const setting of settings) await open(database.url).unsafe(`alter database ${name} set ${setting}`);
}

describe("a database that is set otherwise than what is taken for granted", () => {
	const OTHERWISE = [
		"datestyle = 'SQL, DMY'",
		"datestyle = 'German'",
		"bytea_output = 'escape'",
		"default_transaction_isolation = 'serializable'",
		"array_nulls = off",
		"standard_conforming_strings = off",
	];
	test("gives times, bytes, lists and rows as they are", async () => {
		await set(...OTHERWISE);
		await migrate(deps, database.url);
		const url = (await migratedUrl(database.url)) as string;
		const [row] = await open(url)`
			select '2026-02-03T04:05:06Z'::timestamptz as at, '\\x00ff5c'::bytea as bytes, '{null}'::text[] is distinct from '{"null"}' as nulls,
				current_setting('transaction_isolation') as isolation, ${"a\\'b"} as text`;
		expect(row).toEqual({
			at: new Date("2026-02-03T04:05:06Z"),
			bytes: Buffer.from([0, 255, 92]),
			nulls: true,
			isolation: "read committed",
			text: "a\\'b",
		});
	});

	test("is refused behind a pooler that overlooks what is asked for, and only where it matters", async () => {
		const pooler = startFakePooler(database.url, { overlooks: ["bytea_output"] });
		ended.push(() => pooler.stop());
		await migrate(deps, pooler.url);
		await set("bytea_output = 'escape'");
		for (const start of [() => migrate(deps, pooler.url), () => migratedUrl(pooler.url)])
			await expect(start()).rejects.toThrow("have bytea_output = escape");
	});
});
