import { beforeEach, expect, test } from "bun:test";
import {
	copyFileSync,
	existsSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	utimesSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { systemClock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import { archiveDays } from "../../src/ledger/archive.ts";
import { checkArchive, checkArchives, checkPath } from "../../src/ledger/archive-check.ts";
import { formatArchiveRow, parquetSchema, parseArchiveRow } from "../../src/ledger/archive-columns.ts";
import { type ArchiveStorage, openArchive } from "../../src/ledger/archive-place.ts";
import { sealDays } from "../../src/ledger/seals.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { rolledBack, withDatabase } from "../support/database.ts";
import { startObjectStorage } from "../support/object-storage.ts";

const DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"];
const REQUESTS_A_DAY = 5;
/** A text with characters that JSON, SQL or Parquet could damage. */
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
// Records a request of a lost instance as an operator's attestation does; no seal includes the request.
await db.sql`
	insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
		reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at, settled_at)
	values (gen_random_uuid(), 'acc', 'key', 'i', 1, 'm', '', 'chat', false, 5, 0, 'recovered', 'crashed', 500, '2026-01-02', '2026-01-02 12:00+00')`;
await db.sql`
	insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note, created_at)
	select kind || sign, 'acc', kind, sign * 7, kind || sign, 'test', ${ODD}, '2026-01-02 12:00:00.000001+00'
	from unnest(array['top_up', 'refund', 'adjustment', 'dispute', 'credit_note']) kind, unnest(array[1, -2]) sign`;
// Removes the later sealed days, so that the tested day has no following sealed day.
while ((await db.sql`select 1 from sealed_day where day = ${DAYS.at(-1) ?? ""}`).length === 0)
	await sealDays({ statements: db.statements, clock: systemClock });
await db.sql`delete from sealed_day where day > ${DAYS.at(-1) ?? ""}`;

let folder = "";
beforeEach(async () => {
	folder = temporaryFolder();
	await db.sql`update sealed_day set archived_at = null`;
});

const archive = () => archiveDays(db.statements, openArchive({ folder }), { own: false });
const problems = async () =>
	(await checkPath(folder)).flatMap(({ path, problem }) =>
		problem === null ? [] : [`${path.slice(folder.length + 1)}: ${problem}`],
	);

test("the archive has each sealed day once, in two files that match the day's seal", async () => {
	expect(await archive()).toEqual(DAYS);
	const files = await checkPath(folder);
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

test("the archive stores whole nano-dollars and microseconds in the Parquet columns", async () => {
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

/** Copies an archive file and changes values of its rows or its seal, as a forger could. */
async function forge(
	name: string,
	{
		row: change,
		seal,
	}: { row?: (row: Record<string, unknown>) => void; seal?: (kv: Map<string, string>) => void } = {},
) {
	const { fileWriter, ParquetWriter } = await import("hyparquet-writer");
	const { parquetMetadataAsync } = await import("hyparquet");
	const path = join(folder, name);
	const file = await asyncBufferFromFile(path);
	const metadata = await parquetMetadataAsync(file);
	const rows = await parquetReadObjects({ file, parsers: { timestampFromMicroseconds: (at) => at } });
	const kind = name.startsWith("usage") ? "usage" : "entries";
	if (rows[1] !== undefined) change?.(rows[1]);
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

test("the archive detects any changed value in a rewritten file", async () => {
	await archive();
	await forge("usage-2026-01-02.parquet");
	await forge("entries-2026-01-02.parquet");
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
		await forge(name, {
			row(row) {
				was = row[column];
				row[column] = value;
			},
		});
		expect([column, ...(await problems())]).toEqual([column, `${name}: ${problem}`]);
		await forge(name, { row: (row) => void Object.assign(row, { [column]: was }) });
	}
	expect(await problems()).toEqual([]);
});

test("the archive detects a day with a forged seal and a missing day", async () => {
	await archive();
	for (const name of ["usage-2026-01-01.parquet", "entries-2026-01-01.parquet"])
		await forge(name, {
			seal(kv) {
				const sealed = (kv.get("tollgate.sealed") ?? "").replace(/, \d+, \d+, ""\]$/, ', 5, 5, ""]');
				kv.set("tollgate.sealed", sealed);
				kv.set("tollgate.seal", sha256(sealed));
			},
		});
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

test("the archive reports a file of another format as a problem", async () => {
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
	await forge("usage-2026-01-01.parquet", { seal: (kv) => kv.clear() });
	expect((await checkArchive(join(folder, "usage-2026-01-01.parquet"))).problem).toBe("it has no seal");
	await forge("entries-2026-01-01.parquet", { seal: (kv) => void kv.set("tollgate.seal", "00") });
	expect((await checkArchive(join(folder, "entries-2026-01-01.parquet"))).problem).toBe(
		"its sums do not belong to its seal",
	);
});

test("the archive refuses a day that differs from its seal, and leaves no file", async () => {
	await rolledBack(db.sql, async (transaction, statements) => {
		await transaction`update usage_event set model = 'm' where settled_at < '2026-01-02'`;
		await expect(archiveDays(statements, openArchive({ folder }), { own: false })).rejects.toMatchObject({
			code: "conflict",
			message: "2026-01-01 differs from its seal: a row was changed.",
		});
	});
	expect(readdirSync(folder)).toEqual([]);
});

test("the archive builds the same row text from the database and from a file", async () => {
	const rows = await db.sql`select books_usage_row(e) as row from usage_event e where e.rate_card_id <> ''`;
	expect(rows).toHaveLength(3 * REQUESTS_A_DAY);
	for (const { row } of rows) expect(formatArchiveRow("usage", parseArchiveRow("usage", row))).toBe(row);
});

const storage = startObjectStorage();
const bucket = { endpoint: storage.url, bucket: "books", region: "us-east-1", accessKeyId: "id", secretAccessKey: "s" };
const ownPlaces = {
	"a folder": () => openArchive({ folder }),
	"a bucket": () => openArchive({ bucket, prefix: `run-${newUuid()}/` }),
};
const noted = async () =>
	(
		await db.sql`select to_char(day, 'YYYY-MM-DD') as day from sealed_day where archived_at is not null order by day`
	).map(({ day }) => day);

for (const [where, open] of Object.entries(ownPlaces)) {
	test(`the archive marks a day as archived after reading both files again from ${where}`, async () => {
		const place = open();
		expect(await archiveDays(db.statements, place, { own: false })).toEqual(DAYS);
		expect(await noted()).toEqual([]);
		expect(await archiveDays(db.statements, place, { own: true })).toEqual([]);
		expect(await noted()).toEqual(DAYS);
		const files = await checkArchives(place);
		expect(files.map(({ day, rows, problem }) => [day, rows, problem]).length).toBe(6);
		expect(files.filter(({ problem }) => problem !== null)).toEqual([]);
		expect(files[0]?.path).toBe(`${place.name.replace(/\/$/, "")}/entries-2026-01-01.parquet`);
	});

	test(`the archive marks no day whose files in ${where} are torn or of another day`, async () => {
		const place = open();
		const other = join(folder, "other");
		const whole = openArchive({ folder: other });
		await archiveDays(db.statements, whole, { own: false });
		const name = "usage-2026-01-02.parquet";
		// Gives the archive another file of this day, as if a restored database had sealed the day again.
		await whole.reading("usage-2026-01-01.parquet", (path) => place.put(name, copied(path)));
		await expect(archiveDays(db.statements, place, { own: true })).rejects.toMatchObject({
			code: "conflict",
			message: expect.stringContaining("The archive has other usage of 2026-01-02, with the seal "),
		});
		expect(await noted()).toEqual(["2026-01-01"]);
		const torn = copied(join(other, name));
		writeFileSync(torn, readFileSync(torn).subarray(0, 1_000));
		await place.put(name, torn);
		await expect(archiveDays(db.statements, place, { own: true })).rejects.toThrow("differ from their seal");
		expect(await noted()).toEqual(["2026-01-01"]);
		await place.put(name, copied(join(other, name)));
		await archiveDays(db.statements, place, { own: true });
		expect(await noted()).toEqual(DAYS);
	});
}

function copied(path: string): string {
	const copy = join(folder, `copy-${newUuid()}`);
	copyFileSync(path, copy);
	return copy;
}

test("the archive repeats a failed upload in the next run", async () => {
	const place = ownPlaces["a bucket"]();
	let puts = 0;
	const failing: ArchiveStorage = {
		...place,
		async put(name, part) {
			if (++puts === 2) throw new Error("the connection was lost");
			await place.put(name, part);
		},
	};
	await expect(archiveDays(db.statements, failing, { own: true })).rejects.toThrow("the connection was lost");
	expect(await noted()).toEqual([]);
	const stopping = new AbortController();
	stopping.abort(new Error("stopping"));
	await expect(archiveDays(db.statements, place, { own: true, signal: stopping.signal })).rejects.toThrow("stopping");
	expect(await archiveDays(db.statements, place, { own: true })).toEqual(DAYS);
	expect(await noted()).toEqual(DAYS);
	expect((await checkArchives(place)).every(({ problem }) => problem === null)).toBe(true);
	expect(
		readdirSync(tmpdir()).filter((name) => name.endsWith(".part") || name.startsWith("tollgate-archive-")),
	).toEqual([]);
});

for (const [where, open] of Object.entries(ownPlaces))
	test(`the archive accepts the same days from two concurrent consoles in ${where}`, async () => {
		const place = open();
		// Delays both consoles' listing of the archive, so that neither sees the other's files before both write.
		let asked = 0;
		const both = Promise.withResolvers<void>();
		const blind: ArchiveStorage = {
			...place,
			async has(name) {
				const isThere = await place.has(name);
				if (++asked === 2) both.resolve();
				await both.promise;
				return isThere;
			},
		};
		const wrote = await Promise.all([1, 2].map(() => archiveDays(db.statements, blind, { own: true })));
		expect(wrote.flat().filter((day) => day === DAYS[0])).toHaveLength(2);
		expect(await noted()).toEqual(DAYS);
		const files = await checkArchives(place);
		expect(files.map(({ problem }) => problem)).toEqual(Array(6).fill(null));
	});

test("the archive deletes the work folder of a killed process, not of a running one", async () => {
	const script = `
		import { openWorkFolder } from ${JSON.stringify(join(import.meta.dir, "../../src/base/work-folder.ts"))};
		const { path } = openWorkFolder("tollgate-archive-");
		await Bun.write(path + "/usage-2026-01-01.parquet", "half");
		console.log(path);
		setInterval(() => {}, 1_000);`;
	const began = async () => {
		const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", env: process.env });
		const { value } = await child.stdout.getReader().read();
		const path = new TextDecoder().decode(value).trim();
		utimesSync(path, 1_000_000_000, 1_000_000_000);
		return { child, path };
	};
	const [killed, living] = [await began(), await began()];
	try {
		killed.child.kill("SIGKILL");
		await killed.child.exited;
		await archiveDays(db.statements, ownPlaces["a bucket"](), { own: true });
		expect([existsSync(killed.path), existsSync(join(living.path, "usage-2026-01-01.parquet"))]).toEqual([false, true]);
	} finally {
		living.child.kill("SIGKILL");
		await living.child.exited;
		for (const { path } of [killed, living]) rmSync(path, { recursive: true, force: true });
	}
});

test("the archive writes only a day's ledger entries if the day's requests are deleted", async () => {
	const place = ownPlaces["a folder"]();
	await db.sql`update removal set usage_before = '2026-01-02'`;
	await archiveDays(db.statements, place, { own: false });
	expect((await place.names()).filter((name) => name.includes("01-01"))).toEqual(["entries-2026-01-01.parquet"]);
	await db.sql`update removal set usage_before = '-infinity'`;
});
