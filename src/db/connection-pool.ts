import type postgres from "postgres";
import { type Clock, withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Connect, type Connection, type ConnectionOptions, createConnection } from "./connection.ts";
import { DatabaseBusy, DatabaseTimeout } from "./outage.ts";

/** Most callers that wait for a connection. Each gives up before its own deadline. */
const WAITING_MAX = 20_000;
/** Least share of its time that a statement must have left when it gets a connection; with less it would time out. */
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
	connect: Connect,
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
