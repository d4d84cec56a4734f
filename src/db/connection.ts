import type postgres from "postgres";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { connectionEnded, isConnectionLost, isOfServer } from "./outage.ts";
import { createReconnectBackoff, type ReconnectBackoff } from "./reconnect-backoff.ts";
import type { ServerHistory } from "./server-history.ts";

export type Connection = ReturnType<typeof createConnection>;

/** Options by which the driver reports received rows and a closed connection. */
interface ClientHooks {
	onclose(): void;
	onnotify?(channel: string, payload: string): void;
	readonly transform: { row<Row>(row: Row): Row };
}

/** A client that is being opened. It is ready once its settings are set. */
export interface OpenClient {
	readonly ready: Promise<postgres.Sql>;
	end(how: { timeout: number }): Promise<void>;
	/** Cancels on the server what the session runs. */
	cancel(): Promise<void>;
}

export type Connect = (hooks?: Partial<ClientHooks>, backoff?: ReconnectBackoff) => OpenClient;

interface OpenConnection {
	readonly link: OpenClient;
	/** Number of rows that the last statement returned. */
	rows: number;
	/** When the connection is to be replaced, by the monotonic clock. */
	untilMs: number;
	/** True while a statement has no answer of the server. */
	isUnanswered: boolean;
}

export interface ConnectionOptions {
	/** An idle connection is closed after it. */
	readonly idleMs?: number | undefined;
	/** Age at which it is replaced; by default LIFE_MS_MIN to LIFE_MS_MAX. */
	readonly lifeMs?: number | undefined;
	/** Checks the server of each new connection. */
	readonly history?: ServerHistory | undefined;
}

/** Connections are replaced at this age: server processes grow, and the address can lead to another server. */
const LIFE_MS_MIN = 30 * 60_000;
const LIFE_MS_MAX = 60 * 60_000;

/** SQLSTATE in_failed_sql_transaction: an earlier text of several statements began a transaction and failed. */
const FAILED_TRANSACTION = "25P02";
/** SQLSTATE too_many_connections: the answer of a server without a free place. */
const NO_PLACE = "53300";

/** A connection to the database, opened on first use and again after it broke. */
export function createConnection(deps: { log: Log }, connect: Connect, options: ConnectionOptions = {}) {
	const { idleMs = LIFE_MS_MAX, history } = options;
	const backoff = createReconnectBackoff(systemClock.monotonicMs);
	let current: OpenConnection | undefined;
	let opening: OpenConnection | undefined;
	let cancelRest = () => {};
	let ended = false;

	const untilMs = () =>
		systemClock.monotonicMs() + (options.lifeMs ?? LIFE_MS_MIN + Math.random() * (LIFE_MS_MAX - LIFE_MS_MIN));

	function open(): OpenConnection {
		const hooks: ClientHooks = {
			onclose() {
				if (current === opened) current = undefined;
			},
			transform: {
				row(row) {
					opened.rows += 1;
					return row;
				},
			},
		};
		const opened: OpenConnection = { link: connect(hooks, backoff), rows: 0, untilMs: untilMs(), isUnanswered: false };
		return opened;
	}

	function drop(one: OpenConnection | undefined): void {
		if (one?.isUnanswered) void one.link.cancel();
		one?.link
			.end({ timeout: 0 })
			.catch((error) => deps.log.debug("closing a stuck database connection failed", { error }));
	}

	function renew(): void {
		cancelRest();
		for (const one of [current, opening]) drop(one);
		current = undefined;
		opening = undefined;
	}

	/** The open connection; one past its life is closed once its successor is there. */
	async function usable(): Promise<OpenConnection> {
		if (current !== undefined && current.untilMs > systemClock.monotonicMs()) return current;
		const opened = open();
		opening = opened;
		try {
			const client = await opened.link.ready;
			await history?.check((text) => client.unsafe(text));
			if (opening !== opened) throw connectionEnded();
		} catch (error) {
			if (opening === opened) opening = undefined;
			drop(opened);
			// No proof that the address leads elsewhere: a busy server must not end what runs.
			if (current === undefined || (error as { code?: unknown }).code !== NO_PLACE) throw error;
			current.untilMs = untilMs();
			return current;
		}
		opening = undefined;
		drop(current);
		current = opened;
		return opened;
	}

	return {
		/** Runs one piece of work at a time. */
		async run<T>(work: (client: postgres.Sql) => PromiseLike<T>): Promise<T> {
			if (ended) throw connectionEnded();
			cancelRest();
			const used = await usable();
			used.rows = 0;
			used.isUnanswered = true;
			try {
				const result = await work(await used.link.ready);
				used.isUnanswered = false;
				return result;
			} catch (error) {
				used.isUnanswered = isConnectionLost(error);
				if (current === used && !ended && leavesTraces(error, used)) renew();
				throw error;
			} finally {
				if (current === used && !ended) cancelRest = systemClock.after(idleMs, renew);
			}
		},
		/** Drops the connection and cancels the work on it; the next call opens a new one. */
		renew,
		/** The same, but for a connection that is being opened: its server is being checked. */
		renewOld() {
			drop(current);
			current = undefined;
		},
		async end() {
			ended = true;
			cancelRest();
			const open = [current, opening].filter((one) => one !== undefined);
			await Promise.all(open.map(({ link }) => link.end({ timeout: 1 })));
			await Promise.all(open.map(({ link, isUnanswered }) => isUnanswered && link.cancel()));
		},
	};
}

/**
 * Whether the driver will fail the next statement: it keeps a server's last error. It also keeps the count of rows
 * received before an error, and puts as many empty rows before those of the next statement.
 */
function leavesTraces(error: unknown, { rows }: OpenConnection): boolean {
	const isInTransaction = (error as { code?: unknown }).code === FAILED_TRANSACTION;
	return isConnectionLost(error) || isInTransaction || (rows > 0 && isOfServer(error));
}
