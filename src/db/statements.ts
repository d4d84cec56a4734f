import type postgres from "postgres";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ClientHooks } from "./connection.ts";
import { createConnectionPool } from "./connection-pool.ts";
import { newClient } from "./new-client.ts";
import { DatabaseBusy } from "./outage.ts";
import type { ReconnectBackoff } from "./reconnect-backoff.ts";

/** Bytes are a `bytea`. */
export type StatementValue = string | number | boolean | null | Uint8Array;

/**
 * A client of single statements that may be repeated, each with a deadline.
 *
 * It has no `begin`: on a pipelined client a BEGIN can be sent without its connection being reserved, and then the
 * acknowledged statements of strangers are rolled back with it. It is a template function alone, so the type forbids it.
 */
export interface Statements {
	<Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]): Promise<Row[]>;
	/** Ends all connections; statements under way are rejected. */
	end(): Promise<void>;
}

export interface StatementsOptions {
	url: string;
	connectionsMax: number;
	/** After it the statement is given up, its connection discarded and a new one made. */
	statementDeadlineMs: number;
	/**
	 * The server gives a statement up that waits for a lock so long; nothing of it was carried out, and it is sent again
	 * until its deadline. So a row that somebody holds keeps a connection from nobody for longer than this.
	 */
	lockTimeoutMs?: number;
	applicationName: string;
}

const LOCK_TIMEOUT_MS = 500;
/** Between two attempts at a lock the connection is for others. */
const LOCK_PAUSE_MS = 50;
/** The server itself lets a statement run so long at least: it ends what nobody waits for any more. */
const SERVER_STATEMENT_TIMEOUT_MS_MIN = 30_000;
/** SQLSTATE lock_not_available, also what our own functions say of a row that is held. */
const LOCK_NOT_AVAILABLE = "55P03";

/**
 * One statement at a time on each connection: what waits for a lock, or for an answer that never comes, holds up no
 * other statement behind it, and a connection that is stuck is given up alone.
 */
export function createStatements(deps: { clock: Clock; log: Log }, options: StatementsOptions): Statements {
	const { clock } = deps;
	const lockTimeoutMs = options.lockTimeoutMs ?? LOCK_TIMEOUT_MS;
	const pool = createConnectionPool(deps, options.connectionsMax, (hooks, backoff) =>
		connect({ ...options, lockTimeoutMs }, hooks, backoff),
	);

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

function connect(
	options: StatementsOptions & { lockTimeoutMs: number },
	hooks: ClientHooks,
	backoff: ReconnectBackoff,
): postgres.Sql {
	return newClient(
		options.url,
		{
			...hooks,
			connect_timeout: 5,
			onnotice: () => {},
			connection: {
				application_name: options.applicationName,
				statement_timeout: Math.max(SERVER_STATEMENT_TIMEOUT_MS_MIN, 2 * options.statementDeadlineMs),
				lock_timeout: options.lockTimeoutMs,
			},
		},
		backoff,
	);
}

function isLockHeld(error: unknown): boolean {
	return (error as { code?: unknown } | null)?.code === LOCK_NOT_AVAILABLE;
}
