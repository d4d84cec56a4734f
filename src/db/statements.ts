import postgres from "postgres";
import type { Clock } from "../base/clock.ts";
import { withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";

/** Bytes are a `bytea`. */
export type StatementValue = string | number | boolean | null | Uint8Array;

/**
 * The client of the write-behind path: single statements that may be repeated, each with a deadline.
 *
 * It has no `begin`: on a pipelined client a BEGIN can be sent without its connection being reserved, and then the
 * acknowledged statements of strangers are rolled back with it. It is a template function alone, so the type forbids it.
 */
export interface Statements {
	<Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]): Promise<Row[]>;
	/** Ends all connections; statements under way are rejected. */
	end(): Promise<void>;
}

/** The answer did not come in time: the statement may or may not have been carried out. */
export class DatabaseTimeout extends Error {
	override readonly name = "DatabaseTimeout" as const;
}

export interface HotOptions {
	url: string;
	connectionsMax: number;
	/** After it the statement is given up, its client discarded and a new one made. */
	statementDeadlineMs: number;
	applicationName: string;
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

export function createStatements(deps: { clock: Clock; log: Log }, options: HotOptions): Statements {
	let client = connect(options);
	let ended = false;

	/** A half-open connection never answers and never fails, so the whole client goes, with its queue. */
	function replace(broken: postgres.Sql): void {
		if (client !== broken || ended) return;
		client = connect(options);
		void broken
			.end({ timeout: 0 })
			.catch((error) => deps.log.debug("closing a stuck database client failed", { error }));
	}

	async function run<Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]): Promise<Row[]> {
		const used = client;
		const query = used(strings, ...values) as unknown as Promise<Row[]>;
		try {
			return await withDeadline(
				deps.clock,
				query,
				options.statementDeadlineMs,
				() => new DatabaseTimeout("the database did not answer in time"),
			);
		} catch (error) {
			if (error instanceof DatabaseTimeout) {
				query.catch(() => {
					// Already reported as a timeout; the discarded client rejects it later.
				});
				replace(used);
			}
			throw error;
		}
	}

	return Object.assign(run, {
		async end() {
			ended = true;
			await client.end({ timeout: 1 });
		},
	});
}

function connect(options: HotOptions): postgres.Sql {
	return postgres(options.url, {
		max: options.connectionsMax,
		connect_timeout: 5,
		backoff: reconnectDelayS,
		idle_timeout: 0,
		// The driver's own first query, for array types: cut in the middle it rejects with nobody to hear it, and that ends the process.
		fetch_types: false,
		onnotice: () => {},
		connection: {
			application_name: options.applicationName,
			statement_timeout: Math.max(SERVER_STATEMENT_TIMEOUT_MS_MIN, 2 * options.statementDeadlineMs),
		},
	});
}
