import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import { checkArchive } from "./archive-check.ts";
import type { ArchiveKind, ArchiveValue } from "./archive-columns.ts";
import { ARCHIVE_COLUMNS, parquetSchema, rowOfValues, valuesOfRow } from "./archive-columns.ts";

/** Rows that are read, and written as one row group, at once. */
const PAGE_ROWS = 5_000;
const KINDS: readonly ArchiveKind[] = ["usage", "entries"];
const NOBODY = "00000000-0000-0000-0000-000000000000";

interface DayRow {
	day: string;
	/** -infinity for the first one, which has everything before it. */
	starts: string;
	ends: string;
	sealed: string;
	seal: string;
}

/**
 * Writes each sealed day that the folder has not yet as two Parquet files, `usage-<day>.parquet` and
 * `entries-<day>.parquet`, with its seal in them. A file appears whole, after it was read back and agreed with its seal:
 * Fault conflict if it does not. Gives the days, oldest first.
 */
export async function archiveDays(
	statements: Statements,
	folder: string,
	onDay: (day: string) => void = () => {},
): Promise<string[]> {
	await mkdir(folder, { recursive: true });
	const written: string[] = [];
	for (let after: string | null = null; ; ) {
		const day = await nextDay(statements, after);
		if (day === undefined) return written;
		after = day.day;
		const missing = KINDS.filter((kind) => !isThere(join(folder, `${kind}-${day.day}.parquet`)));
		for (const kind of missing) await writeFile(statements, day, kind, join(folder, `${kind}-${day.day}.parquet`));
		if (missing.length === 0) continue;
		written.push(day.day);
		onDay(day.day);
	}
}

async function nextDay(statements: Statements, after: string | null): Promise<DayRow | undefined> {
	const [day] = await statements<DayRow>`
		select to_char(d.day, 'YYYY-MM-DD') as day, (d.day + 1)::timestamp at time zone 'UTC' || '' as ends,
			case when f.day is null then '-infinity' else d.day::timestamp at time zone 'UTC' || '' end as starts,
			books_sealed(d, f.seal) as sealed, encode(d.seal, 'hex') as seal
		from sealed_day d left join sealed_day f on f.day = d.day - 1
		where ${after}::text is null or d.day > ${after}::text::date order by d.day limit 1`;
	return day;
}

async function writeFile(statements: Statements, day: DayRow, kind: ArchiveKind, path: string): Promise<void> {
	const { fileWriter, ParquetWriter } = await import("hyparquet-writer");
	const part = `${path}.part`;
	try {
		const writer = new ParquetWriter({
			writer: fileWriter(part),
			schema: parquetSchema(kind),
			createdBy: "tollgate",
			kvMetadata: [
				{ key: "tollgate.kind", value: kind },
				{ key: "tollgate.sealed", value: day.sealed },
				{ key: "tollgate.seal", value: day.seal },
			],
		});
		for await (const rows of pagesOf(statements, day, kind)) {
			const values = rows.map((row) => valuesOfRow(kind, row));
			const columnData = ARCHIVE_COLUMNS[kind].map(({ name }, place) => ({
				name,
				data: values.map((row): ArchiveValue => row[place] ?? null),
			}));
			if (rows.some((row, nth) => row !== rowOfValues(kind, values[nth] ?? [])))
				throw new Error("a row cannot be written exactly");
			await writer.write({ columnData, rowGroupSize: PAGE_ROWS });
		}
		await writer.finish();
		const { problem } = await checkArchive(part);
		if (problem !== null) throw new Fault("conflict", `${day.day} is not as it was sealed: ${problem}.`);
		syncFile(part);
		renameSync(part, path);
	} finally {
		rmSync(part, { force: true });
	}
}

async function* pagesOf(statements: Statements, day: DayRow, kind: ArchiveKind): AsyncGenerator<string[]> {
	let at = day.starts;
	let id = kind === "usage" ? NOBODY : "";
	for (;;) {
		const rows: { row: string; at: string; id: string }[] =
			kind === "usage"
				? await statements`
					select books_usage_row(e) as row, e.settled_at::text as at, e.request_id::text as id from usage_event e
					where e.settled_at >= ${at}::text::timestamptz and e.settled_at < ${day.ends}::text::timestamptz
						and (e.settled_at, e.request_id) > (${at}::text::timestamptz, ${id}::uuid) and e.rate_card_id <> ''
					order by e.settled_at, e.request_id limit ${PAGE_ROWS}::integer`
				: await statements`
					select books_entry_row(e) as row, e.created_at::text as at, e.id from ledger_entry e
					where e.created_at >= ${at}::text::timestamptz and e.created_at < ${day.ends}::text::timestamptz
						and (e.created_at, e.id collate "C") > (${at}::text::timestamptz, ${id}::text)
					order by e.created_at, e.id collate "C" limit ${PAGE_ROWS}::integer`;
		if (rows.length > 0) yield rows.map(({ row }) => row);
		const last = rows.at(-1);
		if (last === undefined || rows.length < PAGE_ROWS) return;
		({ at, id } = last);
	}
}

function isThere(path: string): boolean {
	return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function syncFile(path: string): void {
	const file = openSync(path, "r+");
	try {
		fsyncSync(file);
	} finally {
		closeSync(file);
	}
}
