import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { drizzle } from "drizzle-orm/postgres-js";
import type postgres from "postgres";
import type { Clock } from "../base/clock.ts";
import { withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { inTransaction } from "./in-transaction.ts";
import { reconnectDelayS } from "./lane.ts";
import { newClient } from "./new-client.ts";
import { DatabaseTimeout } from "./outage.ts";

/** Drizzle's client, whose statements and transactions have deadlines: error `DatabaseTimeout`. */
export type Transactional = PostgresJsDatabase<Record<string, never>>;

export interface TransactionalOptions {
	readonly url: string;
	readonly applicationName: string;
	readonly statementDeadlineMs: number;
	/** From `begin` to the end of `commit`, the wait for a connection included. */
	readonly transactionDeadlineMs: number;
}

const CONNECTIONS_MAX = 4;
const IDLE_S = 60;
/** The server ends a transaction that its client has left open. */
const IDLE_IN_TRANSACTION_MS = 30_000;
/** What runs on the other connections of a client that is given up may end in order for so long. */
const LEFT_TO_ITSELF_S = 5;

/**
 * For transactions and the console. A connection that is half open never answers and never fails: after the deadline
 * the statement is given up, its client discarded and a new one made, as in `statements.ts`. What it did on the server is
 * unknown; the server itself ends it, at twice the deadline.
 */
export function createTransactional(
	deps: { clock: Clock; log: Log },
	options: TransactionalOptions,
): { tx: Transactional; end(): Promise<void> } {
	let client = connect(options);
	let ended = false;

	function replace(broken: postgres.Sql): void {
		if (client !== broken || ended) return;
		client = connect(options);
		void broken
			.end({ timeout: LEFT_TO_ITSELF_S })
			.catch((error) => deps.log.debug("closing a stuck database client failed", { error }));
	}

	function guarded<T>(used: postgres.Sql, work: PromiseLike<T>, deadlineMs: number): Promise<T> {
		const late = () => {
			replace(used);
			return new DatabaseTimeout("the database did not answer in time");
		};
		return withDeadline(deps.clock, work, deadlineMs, late);
	}

	// All that Drizzle asks of the driver. A query is sent in the next turn, so that `values` still changes its shape.
	const guard = {
		get options() {
			return client.options;
		},
		unsafe(text: string, values?: never[], how?: postgres.UnsafeQueryOptions) {
			const used = client;
			const query = used.unsafe(text, values, how);
			const answer = guarded(used, query, options.statementDeadlineMs);
			const asValues = () => {
				query.values();
				return answer;
			};
			return Object.assign(answer, { values: asValues });
		},
		begin<T>(work: (transaction: postgres.TransactionSql) => Promise<T>) {
			const used = client;
			return guarded(used, inTransaction(used, work), options.transactionDeadlineMs);
		},
	};

	return {
		tx: drizzle(guard as unknown as postgres.Sql),
		async end() {
			ended = true;
			await client.end({ timeout: 1 });
		},
	};
}

function connect(options: TransactionalOptions): postgres.Sql {
	const client = newClient(options.url, {
		max: CONNECTIONS_MAX,
		connect_timeout: 5,
		backoff: reconnectDelayS,
		idle_timeout: IDLE_S,
		// Types of arrays are not fetched: see `lane.ts`.
		fetch_types: false,
		onnotice: () => {},
		connection: {
			application_name: options.applicationName,
			idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
			statement_timeout: 2 * options.statementDeadlineMs,
			// What a transaction appends to the control log it appends at its end: see `control_append`.
			"tollgate.control_at_commit": "on",
		},
	});
	// Drizzle sets how types are read on the client that it is given; one that comes later needs the same.
	drizzle(client);
	return client;
}
