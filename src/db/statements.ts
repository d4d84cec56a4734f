import { type Clock, sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createConnectionPool } from "./connection-pool.ts";
import { connectTo } from "./new-client.ts";
import { DatabaseBusy } from "./outage.ts";

/** Bytes are a `bytea`. */
export type StatementValue = string | number | boolean | null | Uint8Array;

/**
 * A client of single repeatable statements, each with a deadline. Its type is only a template function, without
 * `begin`: a pipelined client can send BEGIN without reserving its connection, and a rollback would then take back
 * other callers' acknowledged statements.
 */
export interface Statements {
	<Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]): Promise<Row[]>;
	/** Ends all connections; running statements are rejected. */
	end(): Promise<void>;
}

export interface StatementsOptions {
	url: string;
	connectionsMax: number;
	/** After it the statement fails, and its connection is replaced. */
	statementDeadlineMs: number;
	/**
	 * The server cancels a statement that waits for a lock for so long, without effect, and the client resends it until
	 * its deadline; a locked row occupies a connection no longer than this.
	 */
	lockTimeoutMs?: number;
	applicationName: string;
}

const LOCK_TIMEOUT_MS = 500;
/** Between two attempts at a lock, other statements use the connection. */
const LOCK_PAUSE_MS = 50;
/** At least this long may a statement run on the server, which then ends it itself. */
const SERVER_STATEMENT_TIMEOUT_MS_MIN = 30_000;
/** SQLSTATE lock_not_available; our own functions raise it too when a row is locked. */
const LOCK_NOT_AVAILABLE = "55P03";

/**
 * One statement at a time on each connection, so that one waiting for a lock, or for an answer that never comes, delays
 * no other, and a stuck connection is replaced alone.
 */
export function createStatements(deps: { clock: Clock; log: Log }, options: StatementsOptions): Statements {
	const { clock } = deps;
	const lockTimeoutMs = options.lockTimeoutMs ?? LOCK_TIMEOUT_MS;
	const connect = connectTo(options.url, {
		application_name: options.applicationName,
		statement_timeout: Math.max(SERVER_STATEMENT_TIMEOUT_MS_MIN, 2 * options.statementDeadlineMs),
		lock_timeout: lockTimeoutMs,
	});
	const pool = createConnectionPool(deps, options.connectionsMax, connect);

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
