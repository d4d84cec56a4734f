import { describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { migrate, migratedUrl } from "../../src/db/migrate.ts";
import { withOwnedDatabase } from "./owned-database.ts";

const deps = { log: silentLog };
const database = withOwnedDatabase();
const { open, set } = database;

describe("a database with unsuitable settings", () => {
	const OTHERWISE = [
		"datestyle = 'SQL, DMY'",
		"datestyle = 'German'",
		"bytea_output = 'escape'",
		"default_transaction_isolation = 'serializable'",
		"array_nulls = off",
		"standard_conforming_strings = off",
		"extra_float_digits = -15",
		"idle_session_timeout = '1s'",
		"transaction_timeout = '1s'",
	];
	test("returns all types correctly and keeps idle connections", async () => {
		await set(...OTHERWISE);
		const { url: made } = await migrate(deps, `${database.url}?client_encoding=LATIN1`);
		const url = (await migratedUrl(database.url)) as string;
		const [row] = await open(url)`
			select '2026-02-03T04:05:06Z'::timestamptz as at, '\\x00ff5c'::bytea as bytes, '{null}'::text[] is distinct from '{"null"}' as nulls,
				current_setting('transaction_isolation') as isolation, ${"a\\'b"} as text, 16777217::float8 as place`;
		expect(row).toEqual({
			at: new Date("2026-02-03T04:05:06Z"),
			bytes: Buffer.from([0, 255, 92]),
			nulls: true,
			isolation: "read committed",
			text: "a\\'b",
			place: 16_777_217,
		});
		const [signs] = await open(made)`select ${"€ü"} as text, length(${"€ü"}) as signs`;
		expect(signs).toEqual({ text: "€ü", signs: 2 });
		for (const address of [made, url, (await migratedUrl(made)) as string])
			expect(
				await open(
					address,
				)`select current_setting('idle_session_timeout') as idle, current_setting('transaction_timeout') as whole`,
			).toEqual([{ idle: "0", whole: "0" }] as never);
	});
});
