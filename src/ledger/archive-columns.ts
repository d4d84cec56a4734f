import { USAGE_FIELD_NAMES, usageField } from "./usage-fields.ts";

/** Type of an archived column, which decides how its values are joined to the text of a row that is hashed. */
type Kind = "text" | "integer" | "nano_usd" | "boolean" | "real" | "moment";

export interface ArchiveColumn {
	readonly name: string;
	readonly kind: Kind;
	readonly nullable?: true;
}

export type ArchiveValue = string | number | bigint | boolean | null;

const column = (kind: Kind) => (name: string) => ({ name, kind });
const text = column("text");
const integer = column("integer");
const nanoUsd = column("nano_usd");
const moment = column("moment");

const KINDS = {
	...{ uuid: "text", text: "text", integer: "integer", bigint: "nano_usd", boolean: "boolean", real: "real" },
	timestamptz: "moment",
} as const satisfies Record<string, Kind>;

/** Index in `usage_event`'s columns where an archived row has two additional columns: the instance and its epoch. */
const IDENTITIES = 3;
const FIELDS = USAGE_FIELD_NAMES.map(usageField).flatMap(({ column: name, type, archived, nullable, optional }) => {
	if (!archived || type === "text[]") return [];
	return { name, kind: KINDS[type], ...(nullable || optional ? { nullable: true as const } : {}) };
});
const USAGE: readonly ArchiveColumn[] = [
	...FIELDS.slice(0, IDENTITIES),
	text("instance_id"),
	integer("epoch"),
	...FIELDS.slice(IDENTITIES),
	moment("settled_at"),
];

const ENTRIES: readonly ArchiveColumn[] = [
	...["id", "account_id", "kind"].map(text),
	nanoUsd("amount_nano_usd"),
	...["source_ref", "actor", "note"].map(text),
	moment("created_at"),
];

export type ArchiveKind = "usage" | "entries";
export const ARCHIVE_COLUMNS: Readonly<Record<ArchiveKind, readonly ArchiveColumn[]>> = {
	usage: USAGE,
	entries: ENTRIES,
};

const PARQUET_TYPES = {
	text: { type: "BYTE_ARRAY", converted_type: "UTF8" },
	integer: { type: "INT32" },
	nano_usd: { type: "INT64" },
	boolean: { type: "BOOLEAN" },
	real: { type: "FLOAT" },
	moment: { type: "INT64", converted_type: "TIMESTAMP_MICROS" },
} as const;

export function parquetSchema(kind: ArchiveKind) {
	const columns = ARCHIVE_COLUMNS[kind];
	return [
		{ name: "root", num_children: columns.length },
		...columns.map(({ name, kind, nullable }) => ({
			name,
			...PARQUET_TYPES[kind],
			repetition_type: nullable === true ? ("OPTIONAL" as const) : ("REQUIRED" as const),
		})),
	];
}

export function parseArchiveRow(kind: ArchiveKind, row: string): ArchiveValue[] {
	const values: unknown = JSON.parse(row);
	if (!Array.isArray(values)) throw new Error("a row is an array");
	return ARCHIVE_COLUMNS[kind].map((column, place) => valueFor(column.kind, values[place]));
}

function valueFor(kind: Kind, value: unknown): ArchiveValue {
	if (value === null) return null;
	if (kind === "nano_usd" || kind === "moment") return BigInt(value as number);
	if (kind === "real") return Buffer.from(value as string, "hex").readFloatBE();
	return value as string | number | boolean;
}

export function formatArchiveRow(kind: ArchiveKind, values: readonly ArchiveValue[]): string {
	return `[${ARCHIVE_COLUMNS[kind].map((column, place) => textOf(column.kind, values[place])).join(", ")}]`;
}

function textOf(kind: Kind, value: ArchiveValue | undefined): string {
	if (value === null || value === undefined) return "null";
	if (kind !== "real") return typeof value === "bigint" ? String(value) : JSON.stringify(value);
	const bytes = Buffer.alloc(4);
	bytes.writeFloatBE(Number(value));
	return `"${bytes.toString("hex")}"`;
}

/** Hash chain over rows, as the SQL function `books_chain` computes it: a hash covers the previous one and a row. */
export function createRowChain() {
	let hash: Uint8Array = new Uint8Array();
	return {
		add(row: string): void {
			hash = new Bun.CryptoHasher("sha256").update(hash).update(row).digest();
		},
		hex: () => Buffer.from(hash).toString("hex"),
	};
}
