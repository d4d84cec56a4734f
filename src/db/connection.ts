import type postgres from "postgres";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { connectionEndedError, isConnectionLost, isServerError } from "./outage.ts";
import { createReconnectBackoff, type ReconnectBackoff } from "./reconnect-backoff.ts";
import type { ServerHistory } from "./server-history.ts";

export type Connection = ReturnType<typeof createConnection>;

/** Functions that the driver calls for received rows and a closed connection. */
interface ClientHooks {
	onclose(): void;
	onnotify?(channel: string, payload: string): void;
	readonly transform: { row<Row>(row: Row): Row };
}

/** A client that is being opened. It is ready once its session's settings are made. */
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
	/** Monotonic time at which the connection is to be replaced. */
	untilMs: number;
	/** True while the server has not answered a statement. */
	isUnanswered: boolean;
}

export interface ConnectionOptions {
	/** Milliseconds after which an idle connection is closed. */
	readonly idleMs?: number | undefined;
	/** Age at which the connection is replaced; by default random from LIFE_MS_MIN to LIFE_MS_MAX. */
	readonly lifeMs?: number | undefined;
	/** Checks the server of each new connection. */
	readonly history?: ServerHistory | undefined;
}

/** Ages at which connections are replaced: server processes grow, and the address may lead to another server. */
const LIFE_MS_MIN = 30 * 60_000;
const LIFE_MS_MAX = 60 * 60_000;

/** SQLSTATE in_failed_sql_transaction: a text of several statements began a transaction and failed. */
const FAILED_TRANSACTION = "25P02";
/** SQLSTATE too_many_connections. */
const NO_PLACE = "53300";

/** A connection to the database. It is opened on first use, and again after it broke. */
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

	/** The open connection. If it is past its life, first tries to open its successor. */
	async function usable(): Promise<OpenConnection> {
		if (current !== undefined && current.untilMs > systemClock.monotonicMs()) return current;
		const opened = open();
		opening = opened;
		try {
			const client = await opened.link.ready;
			await history?.check((text) => client.unsafe(text));
			if (opening !== opened) throw connectionEndedError();
		} catch (error) {
			if (opening === opened) opening = undefined;
			drop(opened);
			// A server without a free connection is busy, not another server: running work may continue.
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
			if (ended) throw connectionEndedError();
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
		/** Drops the connection and cancels its work; the next call opens another. */
		renew,
		/** Like `renew`, but keeps a connection that is being opened: its server is being checked. */
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
 * True if the driver would spoil the next statement. It keeps the server's last error, and the count of rows received
 * before it: so many empty rows would precede the next statement's.
 */
function leavesTraces(error: unknown, { rows }: OpenConnection): boolean {
	const isInTransaction = (error as { code?: unknown }).code === FAILED_TRANSACTION;
	return isConnectionLost(error) || isInTransaction || (rows > 0 && isServerError(error));
}
