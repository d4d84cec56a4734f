import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { systemClock } from "../../src/base/clock.ts";
import { archiveDays } from "../../src/ledger/archive.ts";
import { checkArchive, checkArchives } from "../../src/ledger/archive-check.ts";
import { parquetSchema, rowOfValues, valuesOfRow } from "../../src/ledger/archive-columns.ts";
import { sealDays } from "../../src/ledger/seals.ts";
import { withDatabase } from "../support/database.ts";

const DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"];
const REQUESTS_A_DAY = 5;
/** What a text, a number and a moment can be at worst. */
const ODD = 'line\nbreak, "quote" \\ tab\t \u0001 \u007f \u2028 é 😀 ﷺ';

const db = await withDatabase();
await db.sql`
	insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
		reserved_nano_usd, charged_nano_usd, written_off_nano_usd, basis, ending, status, prompt_tokens, replica, batch_id, admitted_at,
		first_token_ms, duration_ms, settled_at)
	select gen_random_uuid(), 'acc', 'key', 'i', n, ${ODD}, 'card@1', 'chat', n % 2 = 0, 9007199254740991, 9007199254740990 - n, n, 'exact',
		'finished', 200, 2147483647, case when n % 2 = 0 then ${ODD} end, case when n % 3 = 0 then 'batch' end,
		day + interval '1 microsecond', case when n % 2 = 0 then 0.1 end, 16777217, day + n * interval '1 hour' + interval '0.123457 s'
	from unnest(${DAYS}::date[]) day, generate_series(1, ${REQUESTS_A_DAY}::int) n`;
// Attested as lost: no part of a seal.
await db.sql`
	insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
		reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at, settled_at)
	values (gen_random_uuid(), 'acc', 'key', 'i', 1, 'm', '', 'chat', false, 5, 0, 'recovered', 'crashed', 500, '2026-01-02', '2026-01-02 12:00+00')`;
await db.sql`
	insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note, created_at)
	select kind || sign, 'acc', kind, sign * 7, kind || sign, 'test', ${ODD}, '2026-01-02 12:00:00.000001+00'
	from unnest(array['top_up', 'refund', 'adjustment', 'dispute', 'credit_note']) kind, unnest(array[1, -2]) sign`;
await db.sql`update ledger_entry set netted = true`;
// The day after them, since a day that is sealed needs none behind it.
while ((await db.sql`select 1 from sealed_day where day = ${DAYS.at(-1) ?? ""}`).length === 0)
	await sealDays({ statements: db.statements, clock: systemClock });
await db.sql`delete from sealed_day where day > ${DAYS.at(-1) ?? ""}`;

let folder = "";
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "archive-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const archive = () => archiveDays(db.statements, folder);
const problems = async () =>
	(await checkArchives(folder)).flatMap(({ path, problem }) =>
		problem === null ? [] : [`${path.slice(folder.length + 1)}: ${problem}`],
	);

test("every sealed day is two files that agree with their seals, and is written once", async () => {
	expect(await archive()).toEqual(DAYS);
	const files = await checkArchives(folder);
	expect(files.map(({ day, kind, rows, problem }) => [day, kind, rows, problem])).toEqual([
		["2026-01-01", "entries", 0, null],
		["2026-01-01", "usage", REQUESTS_A_DAY, null],
		["2026-01-02", "entries", 10, null],
		["2026-01-02", "usage", REQUESTS_A_DAY, null],
		["2026-01-03", "entries", 0, null],
		["2026-01-03", "usage", REQUESTS_A_DAY, null],
	]);
	const [row] = await db.sql`select encode(seal, 'hex') as seal from sealed_day where day = '2026-01-03'`;
	expect(files.at(-1)?.seal).toBe(row?.seal);
	const before = readFileSync(join(folder, "usage-2026-01-02.parquet"));
	rmSync(join(folder, "entries-2026-01-03.parquet"));
	expect(await archive()).toEqual(["2026-01-03"]);
	expect(await archive()).toEqual([]);
	expect(readFileSync(join(folder, "usage-2026-01-02.parquet")).equals(before)).toBe(true);
	expect(readdirSync(folder)).toHaveLength(6);
});

test("a reader of Parquet finds the amounts in whole nano-dollars and moments to the microsecond", async () => {
	await archive();
	const file = await asyncBufferFromFile(join(folder, "usage-2026-01-02.parquet"));
	const rows = await parquetReadObjects({ file });
	expect(rows[1]).toMatchObject({
		model: ODD,
		charged_nano_usd: 9007199254740988n,
		written_off_nano_usd: 2n,
		prompt_tokens: 2147483647,
		replica: ODD,
		settled_at: new Date("2026-01-02T02:00:00.123Z"),
	});
	const micros = await parquetReadObjects({ file, parsers: { timestampFromMicroseconds: (at) => at } });
	expect(micros[1]?.settled_at).toBe(1_767_319_200_123_457n);
});

/** The same file with some values of its rows or words of its seal changed, as somebody would who can write Parquet. */
async function forge(
	name: string,
	change: (row: Record<string, unknown>) => void,
	seal?: (kv: Map<string, string>) => void,
) {
	const { fileWriter, ParquetWriter } = await import("hyparquet-writer");
	const { parquetMetadataAsync } = await import("hyparquet");
	const path = join(folder, name);
	const file = await asyncBufferFromFile(path);
	const metadata = await parquetMetadataAsync(file);
	const rows = await parquetReadObjects({ file, parsers: { timestampFromMicroseconds: (at) => at } });
	const kind = name.startsWith("usage") ? "usage" : "entries";
	if (rows[1] !== undefined) change(rows[1]);
	const kv = new Map(metadata.key_value_metadata?.map(({ key, value }) => [key, value ?? ""]));
	seal?.(kv);
	const schema = parquetSchema(kind);
	const writer = new ParquetWriter({
		writer: fileWriter(`${path}.forged`),
		schema,
		kvMetadata: [...kv].map(([key, value]) => ({ key, value })),
	});
	writer.write({
		columnData: schema.slice(1).map(({ name }) => ({ name, data: rows.map((row) => row[name] ?? null) })),
	});
	writer.finish();
	renameSync(`${path}.forged`, path);
}
const sha256 = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");

test("a file that is written again unchanged agrees, and one with any value changed does not", async () => {
	await archive();
	await forge("usage-2026-01-02.parquet", () => {});
	await forge("entries-2026-01-02.parquet", () => {});
	expect(await problems()).toEqual([]);
	for (const [name, column, value, problem] of [
		["usage-2026-01-02.parquet", "charged_nano_usd", 1n, "its rows come to other sums"],
		["usage-2026-01-02.parquet", "model", "m", "a row was changed"],
		["usage-2026-01-02.parquet", "settled_at", 1_767_319_200_123_458n, "a row was changed"],
		["usage-2026-01-02.parquet", "duration_ms", 16_777_218, "a row was changed"],
		["usage-2026-01-02.parquet", "batch_id", "", "a row was changed"],
		["entries-2026-01-02.parquet", "note", "", "a row was changed"],
		["entries-2026-01-02.parquet", "kind", "refund", "its rows come to other sums"],
	] as const) {
		let was: unknown;
		await forge(name, (row) => {
			was = row[column];
			row[column] = value;
		});
		expect([column, ...(await problems())]).toEqual([column, `${name}: ${problem}`]);
		await forge(name, (row) => {
			row[column] = was;
		});
	}
	expect(await problems()).toEqual([]);
});

test("a day that is made anew with a seal of its own breaks the chain; one that is missing is missed", async () => {
	await archive();
	for (const name of ["usage-2026-01-01.parquet", "entries-2026-01-01.parquet"])
		await forge(
			name,
			() => {},
			(kv) => {
				const sealed = (kv.get("tollgate.sealed") ?? "").replace(/, \d+, \d+, ""\]$/, ', 5, 5, ""]');
				kv.set("tollgate.sealed", sealed);
				kv.set("tollgate.seal", sha256(sealed));
			},
		);
	expect(await problems()).toEqual(
		["entries", "usage"].map(
			(kind) => `${kind}-2026-01-02.parquet: its seal does not follow from that of the day before`,
		),
	);
	for (const kind of ["usage", "entries"]) rmSync(join(folder, `${kind}-2026-01-02.parquet`));
	expect(await problems()).toEqual(
		["entries", "usage"].map((kind) => `${kind}-2026-01-03.parquet: the day before it is missing`),
	);
});

test("whatever is no archive is said to be none", async () => {
	await archive();
	const path = join(folder, "usage-2026-01-02.parquet");
	const whole = readFileSync(path);
	for (const bytes of [
		Buffer.alloc(0),
		Buffer.from("PAR1"),
		whole.subarray(0, 300),
		Buffer.concat([whole.subarray(0, 50), whole.subarray(90)]),
	]) {
		writeFileSync(path, bytes);
		expect((await checkArchive(path)).problem).toMatch(
			/^(it cannot be read|a row was changed|its rows come to|\d+ rows were sealed)/,
		);
	}
	await forge(
		"usage-2026-01-01.parquet",
		() => {},
		(kv) => kv.clear(),
	);
	expect((await checkArchive(join(folder, "usage-2026-01-01.parquet"))).problem).toBe("it has no seal");
	await forge(
		"entries-2026-01-01.parquet",
		() => {},
		(kv) => kv.set("tollgate.seal", "00"),
	);
	expect((await checkArchive(join(folder, "entries-2026-01-01.parquet"))).problem).toBe(
		"its sums do not belong to its seal",
	);
});

test("a day whose rows were changed since is refused, and leaves no file behind", async () => {
	const undo = new Error("undo");
	await db.sql
		.begin(async (transaction) => {
			await transaction`update usage_event set model = 'm' where settled_at < '2026-01-02'`;
			const statements = ((strings: TemplateStringsArray, ...values: string[]) =>
				transaction(strings, ...values)) as never;
			await expect(archiveDays(statements, folder)).rejects.toMatchObject({
				code: "conflict",
				message: "2026-01-01 is not as it was sealed: a row was changed.",
			});
			throw undo;
		})
		.catch((error) => {
			if (error !== undo) throw error;
		});
	expect(readdirSync(folder)).toEqual([]);
});

test("a row's text is the same from the database and from a file's values", async () => {
	const rows = await db.sql`select books_usage_row(e) as row from usage_event e where e.rate_card_id <> ''`;
	expect(rows).toHaveLength(3 * REQUESTS_A_DAY);
	for (const { row } of rows) expect(rowOfValues("usage", valuesOfRow("usage", row))).toBe(row);
});
