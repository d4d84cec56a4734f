import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";

type ControlKind = "key" | "account" | "project" | "budget";

/** A change that every running instance must apply to the objects in its memory. */
export interface ControlEntry extends AppendedEntry {
	readonly kind: ControlKind;
	/** Id of the key, account, project or budget that changed. */
	readonly subject: string;
	readonly payload: Readonly<Record<string, unknown>>;
}

/**
 * Identifies an entry for ever: its number, and the start of its transaction (µs since 1970). After a failover, a
 * server without the entry may reuse the number.
 */
export interface AppendedEntry {
	readonly seq: number;
	readonly atMicros: number;
}

/** Columns that a statement returns after appending an entry: the entry's number, and `control_at()`. */
export interface AppendedRow {
	readonly seq: string;
	readonly at_micros: string;
}

export function toEntry({ seq, at_micros }: AppendedRow): AppendedEntry {
	return { seq: Number(seq), atMicros: Number(at_micros) };
}

/** The newest entry: an instance that applied it has applied all that were committed before this call. */
export async function newestControlEntry(statements: Statements): Promise<AppendedEntry> {
	const rows = await statements<AppendedRow>`
		select seq, control_at(at) as at_micros from control_log order by seq desc limit 1`;
	return toEntry(onlyRow(rows));
}

/** Channel on which `control_append` announces new entries; the payload is the entry's number. */
export const CONTROL_CHANNEL = "tollgate_control";

/** Entries per query. Readers repeat the query until no entry follows. */
const PAGE_ROWS = 1000;

/** Entries after `seq` in order, at most PAGE_ROWS. `look` receives the server's position if there are any entries. */
export async function readControlAfter(
	statements: Statements,
	seq: number,
	look: (place: string) => unknown = () => {},
): Promise<ControlEntry[]> {
	const rows = await statements<EntryRow & { readonly place: string }>`
		select seq, control_at(at) as at_micros, kind, subject, payload, (select server_place()) as place
		from control_log where seq > ${seq} order by seq limit ${PAGE_ROWS}`;
	if (rows[0] !== undefined) look(rows[0].place);
	return rows.map(entryOf);
}

interface EntryRow extends AppendedRow {
	readonly kind: ControlKind;
	readonly subject: string;
	readonly payload: Record<string, unknown>;
}

const entryOf = (row: EntryRow): ControlEntry => ({
	...toEntry(row),
	kind: row.kind,
	subject: row.subject,
	payload: row.payload,
});

/** Entries of the last hour in order; only the newest `most` if there are more. */
export async function readRecentControl(statements: Statements, most: number): Promise<ControlEntry[]> {
	const rows = await statements<EntryRow>`
		select seq, control_at(at) as at_micros, kind, subject, payload from control_log
		where seq > (select coalesce(max(seq), 0) - ${most} from control_log) and at > now() - interval '1 hour' order by seq`;
	return rows.map(entryOf);
}
