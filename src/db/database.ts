import postgres from "postgres";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "./statements.ts";
import { createStatements, reconnectDelayS } from "./statements.ts";

/** What a gateway needs of a database. Transactions are the console's, by a client of its own (`transactional.ts`). */
export interface Database {
	readonly url: string;
	/** Single repeatable statements with a deadline. */
	readonly statements: Statements;
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
}

export function createDatabase(deps: { clock: Clock; log: Log }, options: DatabaseOptions): Database {
	const { url, applicationName } = options;
	const statements = createStatements(deps, {
		url,
		applicationName: `${applicationName} statements`,
		connectionsMax: options.statementConnectionsMax ?? 4,
		statementDeadlineMs: options.statementDeadlineMs ?? 5_000,
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
		async listen(channel, onNotify, onListen) {
			await listenClient.listen(channel, onNotify, onListen);
		},
		async end() {
			await Promise.all([statements.end(), listenClient.end({ timeout: 1 })]);
		},
	};
}
