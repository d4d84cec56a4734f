import postgres from "postgres";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "./statements.ts";
import { createStatements, reconnectDelayS } from "./statements.ts";
import type { Transactional } from "./transactional.ts";
import { createTransactional } from "./transactional.ts";

/** Three clients of one database: they must not share connections (see `statements.ts`). */
export interface Database {
	readonly url: string;
	/** Single repeatable statements with a deadline. */
	readonly statements: Statements;
	/** Drizzle's own client, for transactions and the console, with deadlines too. Never used on the way of a request. */
	readonly tx: Transactional;
	/**
	 * Hears NOTIFY on `channel`. `onListen` runs on the first subscription and after each reconnect: what was
	 * announced in between is lost, so it must catch up.
	 */
	listen(channel: string, onNotify: (payload: string) => void, onListen: () => void): Promise<void>;
	end(): Promise<void>;
}

export interface DatabaseOptions {
	url: string;
	applicationName: string;
	statementConnectionsMax?: number;
	statementDeadlineMs?: number;
	/** Of a statement of `tx`; a whole transaction may take three times as long. */
	txDeadlineMs?: number;
}

const TX_DEADLINE_MS = 10_000;

export function createDatabase(deps: { clock: Clock; log: Log }, options: DatabaseOptions): Database {
	const { url, applicationName } = options;
	const statements = createStatements(deps, {
		url,
		applicationName: `${applicationName} statements`,
		connectionsMax: options.statementConnectionsMax ?? 4,
		statementDeadlineMs: options.statementDeadlineMs ?? 5_000,
	});
	const txDeadlineMs = options.txDeadlineMs ?? TX_DEADLINE_MS;
	const transactional = createTransactional(deps, {
		url,
		applicationName: `${applicationName} tx`,
		statementDeadlineMs: txDeadlineMs,
		transactionDeadlineMs: 3 * txDeadlineMs,
	});
	const listenClient = postgres(url, {
		connect_timeout: 5,
		backoff: reconnectDelayS,
		// Types of arrays are not fetched: see `statements.ts`.
		fetch_types: false,
		onnotice: () => {},
		max: 1,
		connection: { application_name: `${applicationName} listen` },
	});

	return {
		url,
		statements,
		tx: transactional.tx,
		async listen(channel, onNotify, onListen) {
			await listenClient.listen(channel, onNotify, onListen);
		},
		async end() {
			await Promise.all([statements.end(), transactional.end(), listenClient.end({ timeout: 1 })]);
		},
	};
}
