import { type Clock, sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { TextValues } from "../base/translate.ts";
import { type ConnectionOptions, createConnectionPool } from "./connection.ts";
import { createConnector } from "./new-client.ts";
import { DatabaseBusy, hasCause } from "./outage.ts";

/** A parameter of a statement. Bytes become `bytea`. */
export type StatementValue = string | number | boolean | null | Uint8Array;

/**
 * Client for single repeatable statements, each with a deadline. It has no `begin`: callers share connections, so other
 * callers' statements would run in the transaction.
 */
export interface Statements {
	<Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]): Promise<Row[]>;
	end(): Promise<void>;
}

export interface StatementsOptions extends Pick<ConnectionOptions, "history" | "lifeMs"> {
	url: string;
	connectionsMax: number;
	/** Milliseconds after which a statement fails and its connection is replaced. */
	statementDeadlineMs: number;
	/**
	 * Longest wait for a lock in milliseconds. The server then cancels the statement, and the client repeats it until its
	 * deadline. So a locked row occupies a connection for at most this time.
	 */
	lockTimeoutMs?: number;
	applicationName: string;
}

const LOCK_TIMEOUT_MS = 500;
/** Milliseconds between two attempts at a locked row, in which other statements use the connection. */
const LOCK_PAUSE_MS = 50;
/** The server ends a statement after this time in milliseconds, or after twice its deadline if that is longer. */
const SERVER_STATEMENT_TIMEOUT_MS_MIN = 30_000;
/** SQLSTATE lock_not_available, which the functions in `db/functions` also raise for a locked row. */
const LOCK_NOT_AVAILABLE = "55P03";

/**
 * Runs one statement at a time per connection. So a statement that waits for a lock or an answer delays no other, and a
 * stuck connection is replaced alone.
 */
export function createStatements(deps: { clock: Clock; log: Log }, options: StatementsOptions): Statements {
	const { clock } = deps;
	const lockTimeoutMs = options.lockTimeoutMs ?? LOCK_TIMEOUT_MS;
	const connect = createConnector(options.url, {
		application_name: options.applicationName,
		statement_timeout: Math.max(SERVER_STATEMENT_TIMEOUT_MS_MIN, 2 * options.statementDeadlineMs),
		lock_timeout: lockTimeoutMs,
	});
	const pool = createConnectionPool(deps, options.connectionsMax, connect, {
		history: options.history,
		lifeMs: options.lifeMs,
	});

	async function run<Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]): Promise<Row[]> {
		const untilMs = clock.monotonicMs() + options.statementDeadlineMs;
		for (;;) {
			try {
				return await pool.run(async (client) => (await client(strings, ...values)) as unknown as Row[], untilMs);
			} catch (error) {
				if (!isLockHeld(error)) throw error;
				if (clock.monotonicMs() + LOCK_PAUSE_MS + lockTimeoutMs > untilMs)
					throw new DatabaseBusy("a row that the statement needs is held", { cause: error });
				await sleep(clock, LOCK_PAUSE_MS);
			}
		}
	}

	return Object.assign(run, { end: pool.end });
}

function isLockHeld(error: unknown): boolean {
	return (error as { code?: unknown } | null)?.code === LOCK_NOT_AVAILABLE;
}

export type RowView<Table extends { readonly $inferSelect: object }, Amount = number, Row = Table["$inferSelect"]> = {
	readonly [Name in keyof Row & string as Row[Name] extends Date | null
		? `${Name}Ms`
		: Name]: Row[Name] extends Date | null
		? number | Extract<Row[Name], null>
		: Name extends `${string}NanoUsd`
			? Amount
			: Row[Name];
};

/**
 * Converts a row: names to camel case, times to Unix milliseconds (`created_at` as `createdAtMs`), amounts
 * (`…_nano_usd`) to numbers. Amounts above 2^53 are rounded, so use `nanoUsd` before a calculation that moves money.
 */
export function toView<View>(row: object): View {
	const fields = Object.entries(row).map(([column, value]: [string, unknown]) => {
		const name = column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
		// Times are recognized by the column's name, because Drizzle returns them as texts.
		if (/(^|_)at$/.test(column))
			return [`${name}Ms`, value === null ? null : new Date(value as Date | string).getTime()];
		if (value instanceof Date) return [name, value.getTime()];
		return [name, column.endsWith("_nano_usd") && value !== null ? Number(value) : value];
	});
	return Object.fromEntries(fields) as View;
}

/** Rows that one statement deletes: few, so that they are locked only briefly. */
export const BATCH_ROWS = 1_000;
/** Statements per call; the next call continues. */
const BATCHES_MAX = 500;

/**
 * Repeats a statement that deletes up to BATCH_ROWS rows until it deletes fewer. Returns the number of deleted rows.
 * Repeats, because with one batch per call the table might grow faster than it shrinks.
 */
export async function deleteInBatches(deleteBatch: () => Promise<number>): Promise<number> {
	let removed = 0;
	for (let batch = 0; batch < BATCHES_MAX; batch++) {
		const rows = await deleteBatch();
		removed += rows;
		if (rows < BATCH_ROWS) break;
	}
	return removed;
}

/** SQLSTATEs that functions in `db/functions` raise. The message is the id of a text, the detail its values as JSON. */
const NOT_FOUND = "TG002";
const NOT_COVERED = "TG003";
const CONFLICT = "TG004";
const STALE = "TG005";
const UNIQUE_VIOLATION = "23505";

/** SQLSTATEs for text that Postgres cannot store, because of NUL, invalid bytes or invalid escapes. */
const UNSTORABLE = new Set(["22021", "22P05"]);

/** True if a statement failed because of a client's text, since all texts of the service itself can be stored. */
export function isUnstorableText(error: unknown): boolean {
	return hasCause(error, (cause) => UNSTORABLE.has(String((cause as { code?: unknown }).code)));
}

/** Converts an expected SQL error to a Fault and rethrows others. `taken`: text of the Fault for a unique violation. */
export function faultOfSql(error: unknown, taken?: string): Fault {
	const { code, message, detail } = error as { code?: unknown; message?: unknown; detail?: unknown };
	const text = () => {
		const values = typeof detail === "string" ? (JSON.parse(detail) as TextValues) : {};
		return [String(message), { cause: error, values }] as const;
	};
	if (code === NOT_FOUND) return new Fault("not_found", ...text());
	if (code === CONFLICT) return new Fault("conflict", ...text());
	if (code === STALE) return new Fault("precondition_failed", ...text());
	if (code === NOT_COVERED)
		return new Fault("conflict", "The available credit does not cover this amount.", { cause: error });
	if (code === UNIQUE_VIOLATION && taken !== undefined) return new Fault("conflict", taken, { cause: error });
	throw error;
}

/** Throws the Fault of an expected SQL error, and other errors as they are. */
export const throwFault = (error: unknown): never => {
	throw faultOfSql(error);
};
