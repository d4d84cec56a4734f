import type postgres from "postgres";
import { type Clock, withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Connect, type Connection, createConnection } from "./connection.ts";
import { DatabaseBusy, DatabaseTimeout } from "./outage.ts";

/** Most callers that wait for a connection; each gives up before its own deadline. */
const WAITING_MAX = 20_000;
/** Work with less than this share of its time left does not begin: it would only cost its connection. */
const BEGUN_SHARE_MIN = 1 / 16;

interface Waiting {
	readonly take: (connection: Connection) => void;
	/** The moment when half of the caller's time is over, by the monotonic clock. */
	readonly halfMs: number;
}

/**
 * One piece of work per connection: a statement that waits for a lock, or for an answer that never comes, delays no
 * other. A stuck or broken connection is replaced without touching the others.
 */
export function createConnectionPool(
	deps: { clock: Clock; log: Log },
	connectionsMax: number,
	connect: Connect,
	idleMs?: number,
) {
	const { clock } = deps;
	const connections = Array.from({ length: connectionsMax }, () => createConnection(deps, connect, idleMs));
	/** The connection used last is on top, so that a quiet service keeps few connections warm. */
	const free: Connection[] = [...connections];
	const waiting: Waiting[] = [];
	let ended = false;

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
			// It got its connection in the same moment.
			else void promise.then(release);
			throw error;
		}
	}

	/**
	 * First come, first served, until the first caller has waited for half of its time; then the newest is next.
	 * Otherwise overload would serve all just before their deadline and cut off nearly each with its connection.
	 */
	function release(connection: Connection): void {
		const isLate = waiting[0] !== undefined && clock.monotonicMs() > waiting[0].halfMs;
		const next = isLate ? waiting.pop() : waiting.shift();
		if (next) next.take(connection);
		else free.push(connection);
	}

	/** If one connection went silent, probably all did: the idle ones are replaced too. */
	function discard(stuck: Connection): void {
		stuck.renew();
		for (const connection of free) connection.renew();
	}

	return {
		/** `untilMs`: deadline by the monotonic clock. After it: error `DatabaseTimeout`, and the connection is replaced. */
		async run<T>(work: (client: postgres.Sql) => PromiseLike<T>, untilMs: number): Promise<T> {
			const leftMs = () => Math.max(0, untilMs - clock.monotonicMs());
			const connection = await acquire(leftMs());
			try {
				const answer = connection.run(work);
				return await withDeadline(clock, answer, leftMs(), () => {
					answer.catch(() => {
						// Already reported as a timeout; the discarded connection rejects it later.
					});
					if (!ended) discard(connection);
					return late();
				});
			} finally {
				release(connection);
			}
		},
		/** Ends all connections; work that runs on them is rejected. */
		async end() {
			ended = true;
			await Promise.all(connections.map((connection) => connection.end()));
		},
	};
}

const busy = () => new DatabaseBusy("too many statements wait for a connection");
const late = () => new DatabaseTimeout("the database did not answer in time");
