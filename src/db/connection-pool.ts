import type postgres from "postgres";
import { type Clock, withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Connect, type Connection, type ConnectionOptions, createConnection } from "./connection.ts";
import { DatabaseBusy, DatabaseTimeout } from "./outage.ts";

/** Most callers that wait for a connection. Each stops waiting before its own deadline. */
const WAITING_MAX = 20_000;
/** Work is not started if less than this share of its time is left: it would only cost its connection. */
const BEGUN_SHARE_MIN = 1 / 16;

/**
 * Round trips that a deadline does not count. A connection, its sign-in and checks need up to nine, then the statement
 * two. An unknown round trip time, as at the start, counts as ROUND_TRIP_MS_UNKNOWN.
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
 * Runs one piece of work per connection at a time, so that a statement that waits for a lock or an answer delays no
 * other. A stuck or broken connection is replaced; the others stay.
 */
export function createConnectionPool(
	deps: { clock: Clock; log: Log },
	connectionsMax: number,
	connect: Connect,
	options: ConnectionOptions = {},
) {
	const { clock } = deps;
	const connections = Array.from({ length: connectionsMax }, () => createConnection(deps, connect, options));
	/** Stack with the last used connection on top, so that a quiet service needs few connections. */
	const free: Connection[] = [...connections];
	const waiting: Waiting[] = [];
	let ended = false;
	// Ends work on connections to the former server: its commits do not count any more.
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
			// The caller gave up at the moment it got a connection.
			else void promise.then(release);
			throw error;
		}
	}

	/**
	 * Serves callers in order until the first has waited half of its time; then serves the newest first. In strict order
	 * an overload would serve all just before their deadline, and lose their connections.
	 */
	function release(connection: Connection): void {
		const isLate = waiting[0] !== undefined && clock.monotonicMs() > waiting[0].halfMs;
		const next = isLate ? waiting.pop() : waiting.shift();
		if (next) next.take(connection);
		else free.push(connection);
	}

	/** Replaces idle connections too: if one stopped responding, probably all did. */
	function discard(stuck: Connection): void {
		stuck.renew();
		for (const connection of free) connection.renew();
	}

	return {
		/**
		 * Runs work on a connection. `DatabaseTimeout` after `dueMs` (monotonic clock) and some round trips; the connection
		 * is then replaced.
		 */
		async run<T>(work: (client: postgres.Sql) => PromiseLike<T>, dueMs: number): Promise<T> {
			const untilMs = dueMs + roundTripsMs();
			const leftMs = () => Math.max(0, untilMs - clock.monotonicMs());
			const connection = await acquire(leftMs());
			try {
				const answer = connection.run(work);
				return await withDeadline(clock, answer, leftMs(), () => {
					answer.catch(() => {
						// The work of a discarded connection rejects later; the timeout was already reported.
					});
					if (!ended) discard(connection);
					return late();
				});
			} finally {
				release(connection);
			}
		},
		/** Closes all connections; work that runs on them rejects. */
		async end() {
			ended = true;
			await Promise.all(connections.map((connection) => connection.end()));
		},
	};
}

const busy = () => new DatabaseBusy("too many statements wait for a connection");
const late = () => new DatabaseTimeout("the database did not answer in time");
