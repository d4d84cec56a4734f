import type postgres from "postgres";
import type { Clock } from "../base/clock.ts";
import { withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Connect, type Connection, createConnection } from "./connection.ts";
import { DatabaseBusy, DatabaseTimeout } from "./outage.ts";

/** Connections to the database, each for one piece of work at a time. */
export interface ConnectionPool {
	/** Until then, by the monotonic clock: error `DatabaseTimeout`, and the connection that did not answer is given up. */
	run<T>(work: (client: postgres.Sql) => PromiseLike<T>, untilMs: number): Promise<T>;
	/** Ends all connections; what is under way on them is rejected. */
	end(): Promise<void>;
}

/** What waits for a connection; each is given up before its own deadline. */
const WAITING_MAX = 20_000;
/** What has no more than this share of its time left is not begun: what it began would be given up with its connection. */
const BEGUN_SHARE_MIN = 1 / 16;

interface Waiting {
	readonly take: (connection: Connection) => void;
	/** Half of its time is over then, by the monotonic clock. */
	readonly halfMs: number;
}

/**
 * What waits for a lock, or for an answer that never comes, holds up nothing behind it, and a connection that is stuck or breaks is
 * given up alone.
 */
export function createConnectionPool(
	deps: { clock: Clock; log: Log },
	connectionsMax: number,
	connect: Connect,
	idleMs?: number,
): ConnectionPool {
	const { clock } = deps;
	const connections = Array.from({ length: connectionsMax }, () => createConnection(deps, connect, idleMs));
	/** The one used last is on top, so that a quiet service keeps few connections warm. */
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
			// It had its turn in the same moment.
			else void promise.then(release);
			throw error;
		}
	}

	/**
	 * In turn. But where more comes than the database can do, all would get their turn just before their deadline, and be given up in the
	 * middle, nearly each of them with its connection: then who came last has time.
	 */
	function release(connection: Connection): void {
		const isLate = waiting[0] !== undefined && clock.monotonicMs() > waiting[0].halfMs;
		const next = isLate ? waiting.pop() : waiting.shift();
		if (next) next.take(connection);
		else free.push(connection);
	}

	/** What has gone silent on one connection has probably on all: those that nobody uses are made anew, too. */
	function discard(stuck: Connection): void {
		stuck.renew();
		for (const connection of free) connection.renew();
	}

	return {
		async run(work, untilMs) {
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
		async end() {
			ended = true;
			await Promise.all(connections.map((connection) => connection.end()));
		},
	};
}

const busy = () => new DatabaseBusy("too many statements wait for a connection");
const late = () => new DatabaseTimeout("the database did not answer in time");
