import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Hot } from "./hot.ts";
import { createHot, reconnectDelayS } from "./hot.ts";

export type Transactional = PostgresJsDatabase<Record<string, never>> & { $client: postgres.Sql };

/** Three clients of one database: they must not share connections (see `hot.ts`). */
export interface Database {
	readonly url: string;
	/** Single repeatable statements with a deadline. */
	readonly hot: Hot;
	/** Drizzle's own client, for transactions and the console. Never used on the way of a request. */
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
	hotConnectionsMax?: number;
	statementDeadlineMs?: number;
}

const TX_CONNECTIONS_MAX = 4;

export function createDatabase(deps: { clock: Clock; log: Log }, options: DatabaseOptions): Database {
	const { url, applicationName } = options;
	const hot = createHot(deps, {
		url,
		applicationName: `${applicationName} hot`,
		connectionsMax: options.hotConnectionsMax ?? 4,
		statementDeadlineMs: options.statementDeadlineMs ?? 5_000,
	});
	// Types of arrays are not fetched: see `hot.ts`.
	const common = { connect_timeout: 5, backoff: reconnectDelayS, fetch_types: false, onnotice: () => {} };
	const txClient = postgres(url, {
		...common,
		max: TX_CONNECTIONS_MAX,
		idle_timeout: 60,
		connection: { application_name: `${applicationName} tx`, idle_in_transaction_session_timeout: 30_000 },
	});
	const listenClient = postgres(url, {
		...common,
		max: 1,
		connection: { application_name: `${applicationName} listen` },
	});
	const tx = drizzle(txClient) as Transactional;

	return {
		url,
		hot,
		tx,
		async listen(channel, onNotify, onListen) {
			await listenClient.listen(channel, onNotify, onListen);
		},
		async end() {
			await Promise.all([hot.end(), txClient.end({ timeout: 1 }), listenClient.end({ timeout: 1 })]);
		},
	};
}
