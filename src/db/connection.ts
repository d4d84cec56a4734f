import type postgres from "postgres";
import { type Clock, systemClock, withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { connectionEndedError, DatabaseBusy, DatabaseTimeout, isConnectionLost, isServerError } from "./outage.ts";
import { createReconnectBackoff, type ReconnectBackoff } from "./reconnect-backoff.ts";
import type { ServerHistory } from "./server-history.ts";

type Connection = ReturnType<typeof createConnection>;

/** Callbacks for received rows and for a closed connection. */
interface ClientHooks {
	onclose(): void;
	onnotify?(channel: string, payload: string): void;
	readonly transform: { row<Row>(row: Row): Row };
}

/** A client with its connection. `ready` resolves once the connection is open and the session's settings are set. */
export interface OpenClient {
	readonly ready: Promise<postgres.Sql>;
	end(how: { timeout: number }): Promise<void>;
	/** Requests that the server cancel what this session runs. */
	cancel(): Promise<void>;
}

export type ConnectFunction = (hooks?: Partial<ClientHooks>, backoff?: ReconnectBackoff) => OpenClient;

interface OpenConnection {
	readonly link: OpenClient;
	/** Rows received since the current statement started. */
	rows: number;
	/** Monotonic time after which the connection is replaced. */
	untilMs: number;
	/** True while a statement has no answer. */
	isUnanswered: boolean;
}

export interface ConnectionOptions {
	/** Milliseconds after which an idle connection is closed. */
	readonly idleMs?: number | undefined;
	/** Age in milliseconds at which the connection is replaced; by default random from LIFE_MS_MIN to LIFE_MS_MAX. */
	readonly lifeMs?: number | undefined;
	/** Checks the database server of each new connection. */
	readonly history?: ServerHistory | undefined;
}

/** Ages in milliseconds at which connections are replaced: server processes grow, and the address may have moved. */
const LIFE_MS_MIN = 30 * 60_000;
const LIFE_MS_MAX = 60 * 60_000;

/** SQLSTATE in_failed_sql_transaction: a statement text that contains `begin` has failed. */
const FAILED_TRANSACTION = "25P02";
/** SQLSTATE too_many_connections of the server. */
const NO_PLACE = "53300";

/** A connection to the database. It is opened at its first use and reopened after it broke. */
function createConnection(deps: { log: Log }, connect: ConnectFunction, options: ConnectionOptions = {}) {
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

	/** Returns the open connection. If the connection is too old, first tries to replace it. */
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
			// A server without a free connection is busy but has not moved, so the old connection stays in use.
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
		/** Runs the work alone on the connection; the caller must not run two at a time. */
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
		/** Drops the connection and cancels its work. The next `run` opens another connection. */
		renew,
		/** Like `renew`, but keeps a connection that is being opened, because its server will be checked. */
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
 * True if the driver would spoil the next statement's result. After a server error it keeps the number of rows received
 * before, and the next result would start with as many empty rows.
 */
function leavesTraces(error: unknown, { rows }: OpenConnection): boolean {
	const isInTransaction = (error as { code?: unknown }).code === FAILED_TRANSACTION;
	return isConnectionLost(error) || isInTransaction || (rows > 0 && isServerError(error));
}

/** Maximum number of callers that wait for a connection. Each gives up before its own deadline. */
const WAITING_MAX = 20_000;
/** Minimum share of its time that a statement must have left when it gets a connection; with less it would time out. */
const BEGUN_SHARE_MIN = 1 / 16;

/**
 * Round trips that are added to a deadline. A new connection needs up to nine for sign-in and checks, a statement two.
 * Until the round trip time is measured it counts as ROUND_TRIP_MS_UNKNOWN.
 */
const ROUND_TRIPS = 12;
const ROUND_TRIP_MS_UNKNOWN = 500;
const ROUND_TRIP_MS_MAX = 1_000;

interface Waiting {
	readonly take: (connection: Connection) => void;
	/** Monotonic time at which half of the caller's deadline has passed. */
	readonly halfMs: number;
}

/**
 * Runs one caller's work per connection at a time, so that a statement that waits for a lock or an answer delays no
 * other statement. A stuck or broken connection is replaced alone.
 */
export function createConnectionPool(
	deps: { clock: Clock; log: Log },
	connectionsMax: number,
	connect: ConnectFunction,
	options: ConnectionOptions = {},
) {
	const { clock } = deps;
	const connections = Array.from({ length: connectionsMax }, () => createConnection(deps, connect, options));
	/** Stack: the last used connection is taken first, so that the others become idle and are closed. */
	const free: Connection[] = [...connections];
	const waiting: Waiting[] = [];
	let ended = false;
	// Ends work on connections to the previous database server, because its commits no longer count.
	options.history?.onMove(() => {
		if (!ended) for (const connection of connections) connection.renewOld();
	});

	function roundTripsMs(): number {
		if (options.history === undefined) return 0;
		return ROUND_TRIPS * Math.min(options.history.roundTripMs() ?? ROUND_TRIP_MS_UNKNOWN, ROUND_TRIP_MS_MAX);
	}

	async function acquire(waitMs: number): Promise<Connection> {
		const connection = free.pop();
		if (connection) return connection;
		if (waiting.length >= WAITING_MAX) throw busy();
		const { promise, resolve } = Promise.withResolvers<Connection>();
		const one = { take: resolve, halfMs: clock.monotonicMs() + waitMs / 2 };
		waiting.push(one);
		try {
			return await withDeadline(clock, promise, waitMs * (1 - BEGUN_SHARE_MIN), busy);
		} catch (error) {
			const at = waiting.indexOf(one);
			if (at >= 0) waiting.splice(at, 1);
			// The caller gave up in the moment in which it got a connection, so the connection goes to the next caller.
			else void promise.then(release);
			throw error;
		}
	}

	/**
	 * Serves callers in order until the first has waited half of its time; then serves the newest first. In strict order,
	 * an overload would serve every caller just before its deadline: its statement would time out.
	 */
	function release(connection: Connection): void {
		const isLate = waiting[0] !== undefined && clock.monotonicMs() > waiting[0].halfMs;
		const next = isLate ? waiting.pop() : waiting.shift();
		if (next) next.take(connection);
		else free.push(connection);
	}

	/** Also replaces the idle connections: if one stopped responding, probably all did. */
	function discard(stuck: Connection): void {
		stuck.renew();
		for (const connection of free) connection.renew();
	}

	return {
		/**
		 * Runs work on a connection. Rejects with `DatabaseTimeout` after `dueMs` (monotonic clock) and some round trips;
		 * the connection is then replaced.
		 */
		async run<T>(work: (client: postgres.Sql) => PromiseLike<T>, dueMs: number): Promise<T> {
			const untilMs = dueMs + roundTripsMs();
			const leftMs = () => Math.max(0, untilMs - clock.monotonicMs());
			const connection = await acquire(leftMs());
			try {
				const answer = connection.run(work);
				return await withDeadline(clock, answer, leftMs(), () => {
					answer.catch(() => {
						// Ignores the later rejection of this work: its caller already got the timeout.
					});
					if (!ended) discard(connection);
					return late();
				});
			} finally {
				release(connection);
			}
		},
		async end() {
			ended = true;
			await Promise.all(connections.map((connection) => connection.end()));
		},
	};
}

const busy = () => new DatabaseBusy("too many statements wait for a connection");
const late = () => new DatabaseTimeout("the database did not answer in time");
