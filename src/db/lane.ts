import type postgres from "postgres";
import type { Log } from "../base/log.ts";
import { newClient } from "./new-client.ts";
import { isConnectionLost } from "./outage.ts";

/** Bytes are a `bytea`. */
export type StatementValue = string | number | boolean | null | Uint8Array;

/** One connection to the database, made when it is first used and again whenever it broke. */
export interface Lane {
	run<Row>(strings: TemplateStringsArray, values: readonly StatementValue[]): Promise<Row[]>;
	/** Gives the connection up, with what is under way on it; the next statement makes a new one. */
	renew(): void;
	end(): Promise<void>;
}

export interface LaneOptions {
	url: string;
	applicationName: string;
	statementDeadlineMs: number;
	lockTimeoutMs: number;
}

const RECONNECT_S_MIN = 0.05;
const RECONNECT_S_MAX = 0.5;

/**
 * Pause before a connection is tried again, seconds. The driver's own grows to 20 s, and for so long an instance would
 * stay away from a database that is back. Those who ask pace themselves.
 */
export function reconnectDelayS(failuresInRow: number): number {
	const mostS = Math.min(RECONNECT_S_MAX, RECONNECT_S_MIN * 2 ** failuresInRow);
	return mostS * (0.5 + Math.random() / 2);
}

/** The server itself lets a statement run so long at least: it ends what nobody waits for any more. */
const SERVER_STATEMENT_TIMEOUT_MS_MIN = 30_000;

export function createLane(deps: { log: Log }, options: LaneOptions): Lane {
	let client: postgres.Sql | undefined;
	/** Until it has, the driver's pauses between its attempts to connect are what spares the server. */
	let hasAnswered = false;
	let ended = false;

	function drop(broken: postgres.Sql): void {
		broken
			.end({ timeout: 0 })
			.catch((error) => deps.log.debug("closing a stuck database connection failed", { error }));
	}

	function renew(): void {
		if (!client) return;
		drop(client);
		client = undefined;
		hasAnswered = false;
	}

	return {
		async run<Row>(strings: TemplateStringsArray, values: readonly StatementValue[]) {
			if (ended) throw Object.assign(new Error("the database client has ended"), { code: "CONNECTION_ENDED" });
			client ??= connect(options);
			const used = client;
			try {
				const rows = await used(strings, ...values);
				hasAnswered ||= client === used;
				return rows as unknown as Row[];
			} catch (error) {
				if (client === used) {
					if (!isConnectionLost(error)) hasAnswered = true;
					// The driver keeps what the server said last, and fails the next statement with it, on a connection that is well.
					else if (hasAnswered && !ended) renew();
				}
				throw error;
			}
		},
		renew,
		async end() {
			ended = true;
			await client?.end({ timeout: 1 });
		},
	};
}

function connect(options: LaneOptions): postgres.Sql {
	return newClient(options.url, {
		max: 1,
		connect_timeout: 5,
		backoff: reconnectDelayS,
		idle_timeout: 0,
		// The driver's own first query, for array types: cut in the middle it rejects with nobody to hear it, and that ends the process.
		fetch_types: false,
		onnotice: () => {},
		connection: {
			application_name: options.applicationName,
			statement_timeout: Math.max(SERVER_STATEMENT_TIMEOUT_MS_MIN, 2 * options.statementDeadlineMs),
			lock_timeout: options.lockTimeoutMs,
		},
	});
}
