import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import { checkArchive } from "./archive-check.ts";
import type { ArchiveKind, ArchiveValue } from "./archive-columns.ts";
import { ARCHIVE_COLUMNS, formatArchiveRow, parquetSchema, parseArchiveRow } from "./archive-columns.ts";
import type { ArchiveStorage } from "./archive-place.ts";

/** Rows per query. The rows of each query become one row group of the Parquet file. */
const PAGE_ROWS = 5_000;
const KINDS: readonly ArchiveKind[] = ["usage", "entries"];
const NOBODY = "00000000-0000-0000-0000-000000000000";

interface DayRow {
	day: string;
	/** Start of the day; -infinity for the first sealed day, which also includes all earlier rows. */
	starts: string;
	ends: string;
	sealed: string;
	seal: string;
	/** True if the day's requests were deleted from the database, or are about to be. */
	removed: boolean;
}

export interface ArchiveOptions {
	/**
	 * True for the archive that this service writes. A day is recorded as archived once its files were read back and
	 * match the seal; only then may its requests be deleted. Recorded days are not checked again.
	 */
	readonly own: boolean;
	readonly onDay?: (day: string) => void;
	readonly signal?: AbortSignal;
}

/**
 * Writes each sealed day that the archive lacks as two Parquet files, `usage-<day>.parquet` and
 * `entries-<day>.parquet`, with the day's seal. A day whose requests were deleted gets only its entries file. A file is
 * published after it was read back and matches the seal. Fault `conflict` if it does not match, or if a different file
 * has its name. Returns the archived days, oldest first.
 */
export async function archiveDays(
	statements: Statements,
	place: ArchiveStorage,
	{ own, onDay = () => {}, signal }: ArchiveOptions,
): Promise<string[]> {
	const written: string[] = [];
	for (let after: string | null = null; ; ) {
		signal?.throwIfAborted();
		const day = await nextDay(statements, after, own);
		if (day === undefined) return written;
		after = day.day;
		let missing = 0;
		for (const kind of KINDS) {
			const name = `${kind}-${day.day}.parquet`;
			const isThere = await place.has(name);
			if (!isThere && kind === "usage" && day.removed) continue;
			if (!isThere) await writeFile(statements, place, { day, kind, name, signal });
			if (own) await place.reading(name, (path) => holdsDay(path, day, kind));
			missing += isThere ? 0 : 1;
		}
		if (own)
			await statements`
				update sealed_day set archived_at = clock_timestamp()
				where day = ${day.day}::text::date and seal = decode(${day.seal}, 'hex')`;
		if (missing === 0) continue;
		written.push(day.day);
		onDay(day.day);
	}
}

async function nextDay(statements: Statements, after: string | null, own: boolean): Promise<DayRow | undefined> {
	const [day] = await statements<DayRow>`
		select to_char(d.day, 'YYYY-MM-DD') as day, (d.day + 1)::timestamp at time zone 'UTC' || '' as ends,
			case when f.day is null then '-infinity' else d.day::timestamp at time zone 'UTC' || '' end as starts,
			books_sealed(d, f.seal) as sealed, encode(d.seal, 'hex') as seal,
			exists (select 1 from removal r where r.usage_before > d.day::timestamp at time zone 'UTC') as removed
		from sealed_day d left join sealed_day f on f.day = d.day - 1
		where (${after}::text is null or d.day > ${after}::text::date) and not (${own}::boolean and d.archived_at is not null)
		order by d.day limit 1`;
	return day;
}

/** Checks that the archive's file contains the sealed day. Fault `conflict` if it differs. */
async function holdsDay(path: string, day: DayRow, kind: ArchiveKind): Promise<void> {
	const found = await checkArchive(path);
	if (found.problem !== null)
		throw new Fault("conflict", `The archive's ${kind} of ${day.day} differ from their seal: ${found.problem}.`);
	if (found.kind !== kind || found.seal !== day.seal)
		throw new Fault("conflict", `The archive has other ${kind} of ${day.day}, with the seal ${found.seal}.`);
}

interface FileToWrite {
	readonly day: DayRow;
	readonly kind: ArchiveKind;
	readonly name: string;
	readonly signal: AbortSignal | undefined;
}

async function writeFile(statements: Statements, place: ArchiveStorage, file: FileToWrite): Promise<void> {
	const { day, kind, name, signal } = file;
	const { fileWriter, ParquetWriter } = await import("hyparquet-writer");
	const part = await place.part(name);
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
			signal?.throwIfAborted();
			const values = rows.map((row) => parseArchiveRow(kind, row));
			const columnData = ARCHIVE_COLUMNS[kind].map((column, nth) => ({
				name: column.name,
				data: values.map((row): ArchiveValue => row[nth] ?? null),
			}));
			if (rows.some((row, nth) => row !== formatArchiveRow(kind, values[nth] ?? [])))
				throw new Error("a row cannot be written exactly");
			await writer.write({ columnData, rowGroupSize: PAGE_ROWS });
		}
		await writer.finish();
		const { problem } = await checkArchive(part);
		if (problem !== null) throw new Fault("conflict", `${day.day} differs from its seal: ${problem}.`);
		await place.put(name, part);
	} finally {
		place.drop(part);
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
