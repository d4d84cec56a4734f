import { type Clock, sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ConnectionOptions } from "./connection.ts";
import { createConnectionPool } from "./connection-pool.ts";
import { connectTo } from "./new-client.ts";
import { DatabaseBusy } from "./outage.ts";

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
 * Runs one statement at a time per connection: a statement that waits for a lock or an answer delays no other, and a
 * stuck connection is replaced alone.
 */
export function createStatements(deps: { clock: Clock; log: Log }, options: StatementsOptions): Statements {
	const { clock } = deps;
	const lockTimeoutMs = options.lockTimeoutMs ?? LOCK_TIMEOUT_MS;
	const connect = connectTo(options.url, {
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
