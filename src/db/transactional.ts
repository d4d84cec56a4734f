import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import type postgres from "postgres";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type ConnectFunction, type ConnectionOptions, createConnectionPool } from "./connection.ts";
import { inTransaction } from "./in-transaction.ts";
import { createConnector } from "./new-client.ts";

/** Drizzle client whose statements and transactions have deadlines, after which they fail with `DatabaseTimeout`. */
export type Transactional = PostgresJsDatabase<Record<string, never>>;

interface TransactionalOptions extends Pick<ConnectionOptions, "history"> {
	readonly url: string;
	readonly applicationName: string;
	readonly connectionsMax?: number;
	readonly statementDeadlineMs: number;
	/** Milliseconds from `begin` to the end of `commit`, including the wait for a connection. */
	readonly transactionDeadlineMs: number;
}

const CONNECTIONS_MAX = 4;
const IDLE_MS = 60_000;
/** Milliseconds after which the server ends a transaction whose client sends nothing. */
const IDLE_IN_TRANSACTION_MS = 30_000;

/**
 * Client for transactions and the console. After its deadline, a statement fails with unknown effect and its connection
 * is replaced, because a half-open connection neither answers nor fails. The server ends the statement at twice the
 * deadline.
 */
export function createTransactional(deps: { clock: Clock; log: Log }, options: TransactionalOptions) {
	const connect = createConnector(options.url, {
		application_name: options.applicationName,
		idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
		statement_timeout: 2 * options.statementDeadlineMs,
		// Makes `control_append` append a transaction's control entries at commit.
		"tollgate.control_at_commit": "on",
	});
	const connectTyped: ConnectFunction = (...how) => {
		const { ready, ...link } = connect(...how);
		const typed = ready.then((client) => {
			// Called for its side effect only: Drizzle sets type parsers on each client that it gets.
			drizzle(client);
			return client;
		});
		typed.catch(() => {});
		return { ready: typed, ...link };
	};
	const pool = createConnectionPool(deps, options.connectionsMax ?? CONNECTIONS_MAX, connectTyped, {
		idleMs: IDLE_MS,
		history: options.history,
	});

	function guarded<T>(work: (client: postgres.Sql) => PromiseLike<T>, deadlineMs: number): Promise<T> {
		return pool.run(work, deps.clock.monotonicMs() + deadlineMs);
	}

	// The part of the driver's interface that Drizzle uses. A query is sent in a later step of the event loop, so that
	// `values` can still change its result format.
	const guard = {
		// Drizzle sets type parsers here, without effect, because each connection has its own.
		options: { parsers: {}, serializers: {} },
		unsafe(text: string, parameters?: never[], how?: postgres.UnsafeQueryOptions) {
			let isValues = false;
			const answer = guarded((client): PromiseLike<unknown> => {
				const query = client.unsafe(text, parameters, how);
				return isValues ? query.values() : query;
			}, options.statementDeadlineMs);
			const values = () => {
				isValues = true;
				return answer;
			};
			return Object.assign(answer, { values });
		},
		begin<T>(work: (transaction: postgres.TransactionSql) => Promise<T>) {
			return guarded((client) => inTransaction(client, work), options.transactionDeadlineMs);
		},
	};

	return { tx: drizzle(guard as unknown as postgres.Sql), end: pool.end };
}
