import { stat } from "node:fs/promises";
import type { ArchiveKind, ArchiveValue } from "./archive-columns.ts";
import { ARCHIVE_COLUMNS, createRowChain, formatArchiveRow } from "./archive-columns.ts";
import { type ArchiveStorage, openArchive } from "./archive-place.ts";

/** The day, kind and seals that an archive file states, with the result of checking its rows. */
export interface CheckedArchive {
	readonly path: string;
	readonly day: string | null;
	readonly kind: ArchiveKind | null;
	readonly rows: number;
	/** Seals of this day and of the day before, as SHA-256 in hex ("" before the first day). */
	readonly seal: string | null;
	readonly formerSeal: string | null;
	/** How the rows differ from the seal; null if they match. */
	readonly problem: string | null;
}

const NOTHING_KNOWN = { day: null, kind: null, rows: 0, seal: null, formerSeal: null };
/** Index of each value in the array that a day's seal hashes; the SQL function `books_sealed` builds the array too. */
const SEALED = { format: "tollgate day 1", usageSums: 2, usageHash: 5, entrySums: 6, entryHash: 12, former: 15 };
const ENTRY_KINDS = ["top_up", "refund", "adjustment", "dispute", "credit_note"];

/**
 * Reads an archive file, without a database, and compares its rows with its seal. The file is untrusted: every defect
 * is reported as `problem`.
 */
export async function checkArchive(path: string): Promise<CheckedArchive> {
	try {
		return await readArchive(path);
	} catch (error) {
		const reason = error instanceof Error ? error.message : String(error);
		return { ...NOTHING_KNOWN, path, problem: `it cannot be read: ${reason}` };
	}
}

async function readArchive(path: string): Promise<CheckedArchive> {
	const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import("hyparquet");
	const file = await asyncBufferFromFile(path);
	const metadata = await parquetMetadataAsync(file);
	const named = new Map(metadata.key_value_metadata?.map(({ key, value }) => [key, value ?? ""]));
	const kind = named.get("tollgate.kind");
	const sealed = named.get("tollgate.sealed");
	const seal = named.get("tollgate.seal");
	if ((kind !== "usage" && kind !== "entries") || sealed === undefined || seal === undefined)
		return { ...NOTHING_KNOWN, path, problem: "it has no seal" };
	// Parses integers as bigint, because a day's sums may exceed 2^53.
	const told: unknown = JSON.parse(sealed, (_key: string, value: unknown, context?: { source: string }) =>
		typeof value === "number" ? BigInt(context?.source ?? value) : value,
	);
	if (!Array.isArray(told) || told[0] !== SEALED.format)
		return { ...NOTHING_KNOWN, path, problem: "its seal has another format" };
	const about = { path, day: String(told[1]), kind, seal, formerSeal: String(told[SEALED.former]) } as const;
	if (new Bun.CryptoHasher("sha256").update(sealed).digest("hex") !== seal)
		return { ...about, rows: 0, problem: "its sums do not belong to its seal" };

	const chain = createRowChain();
	const sums = createSums(kind);
	let rows = 0;
	for (const { num_rows } of metadata.row_groups) {
		const objects = await parquetReadObjects({
			file,
			metadata,
			rowStart: rows,
			rowEnd: rows + Number(num_rows),
			parsers: { timestampFromMicroseconds: (micros) => micros },
		});
		for (const object of objects) {
			const values = ARCHIVE_COLUMNS[kind].map(({ name }) => object[name] as ArchiveValue);
			chain.add(formatArchiveRow(kind, values));
			sums.add(object);
		}
		rows += objects.length;
	}
	const isUsage = kind === "usage";
	const toldSums = told.slice(
		...(isUsage ? [SEALED.usageSums, SEALED.usageHash] : [SEALED.entrySums, SEALED.entryHash]),
	);
	const toldHash = told[isUsage ? SEALED.usageHash : SEALED.entryHash];
	return { ...about, rows, problem: problemOf(rows, [rows, ...sums.all()], toldSums, chain.hex() === toldHash) };
}

function problemOf(rows: number, sums: readonly (number | bigint)[], told: readonly unknown[], sameHash: boolean) {
	if (BigInt(rows) !== told[0]) return `${String(told[0])} rows were sealed, ${rows} are there`;
	if (sums.map(String).join() !== told.map(String).join()) return "its rows come to other sums";
	return sameHash ? null : "a row was changed";
}

/** Computes the sums of rows that a seal contains besides their number. */
function createSums(kind: ArchiveKind) {
	const sums = new Map(
		(kind === "usage" ? ["charged_nano_usd", "written_off_nano_usd"] : ENTRY_KINDS).map((name) => [name, 0n]),
	);
	const add = (name: string, amount: bigint) => sums.set(name, (sums.get(name) ?? 0n) + amount);
	return {
		add(row: Record<string, ArchiveValue>): void {
			const entryKind = row.kind === "promotion" ? "adjustment" : String(row.kind);
			if (kind === "entries") add(entryKind, BigInt(row.amount_nano_usd ?? 0));
			else for (const name of sums.keys()) add(name, BigInt(row[name] ?? 0));
		},
		all: () => [...sums.values()],
	};
}

/** Checks one archive file, or all files of a folder including their order (`checkArchives`). */
export async function checkPath(path: string): Promise<CheckedArchive[]> {
	return (await stat(path)).isDirectory() ? checkArchives(openArchive({ folder: path })) : [await checkArchive(path)];
}

/**
 * Checks all archive files, oldest day first. Also checks the chain: no day is missing, and each seal contains the seal
 * of the day before.
 */
export async function checkArchives(place: ArchiveStorage): Promise<CheckedArchive[]> {
	const names = (await place.names()).filter((name) => name.endsWith(".parquet"));
	const checked: CheckedArchive[] = [];
	for (const name of names) {
		const found = await place.reading(name, checkArchive);
		checked.push({ ...found, path: `${place.name.replace(/\/$/, "")}/${name}` });
	}
	checked.sort((a, b) => `${a.day} ${a.kind}`.localeCompare(`${b.day} ${b.kind}`));
	const sealOf = new Map(checked.flatMap(({ day, seal }) => (day === null || seal === null ? [] : [[day, seal]])));
	const first = checked.find(({ day }) => day !== null)?.day;
	return checked.map((archive) => {
		const { day, formerSeal, problem } = archive;
		if (problem !== null || day === null) return archive;
		if (sealOf.get(day) !== archive.seal) return { ...archive, problem: "the other file of this day has another seal" };
		const former = sealOf.get(dayBefore(day));
		if (former === undefined && day !== first) return { ...archive, problem: "the day before it is missing" };
		if (former !== undefined && former !== formerSeal)
			return { ...archive, problem: "its seal does not follow from that of the day before" };
		return archive;
	});
}

function dayBefore(day: string): string {
	return new Date(Date.parse(`${day}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
}
