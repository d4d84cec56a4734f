import type postgres from "postgres";
import type { Clock } from "../base/clock.ts";
import { withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Connect, createLane, type Lane } from "./lane.ts";
import { DatabaseBusy, DatabaseTimeout } from "./outage.ts";

/** Connections to the database, each for one piece of work at a time. */
export interface Lanes {
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
	readonly take: (lane: Lane) => void;
	/** Half of its time is over then, by the monotonic clock. */
	readonly halfMs: number;
}

/**
 * What waits for a lock, or for an answer that never comes, holds up nothing behind it, and a connection that is stuck or breaks is
 * given up alone.
 */
export function createLanes(
	deps: { clock: Clock; log: Log },
	connectionsMax: number,
	connect: Connect,
	idleMs?: number,
): Lanes {
	const { clock } = deps;
	const lanes = Array.from({ length: connectionsMax }, () => createLane(deps, connect, idleMs));
	/** The one used last is on top, so that a quiet service keeps few connections warm. */
	const free: Lane[] = [...lanes];
	const waiting: Waiting[] = [];
	let ended = false;

	async function acquire(waitMs: number): Promise<Lane> {
		const lane = free.pop();
		if (lane) return lane;
		if (waiting.length >= WAITING_MAX) throw busy();
		const { promise, resolve } = Promise.withResolvers<Lane>();
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
	function release(lane: Lane): void {
		const isLate = waiting[0] !== undefined && clock.monotonicMs() > waiting[0].halfMs;
		const next = isLate ? waiting.pop() : waiting.shift();
		if (next) next.take(lane);
		else free.push(lane);
	}

	/** What has gone silent on one connection has probably on all: those that nobody uses are made anew, too. */
	function discard(stuck: Lane): void {
		stuck.renew();
		for (const lane of free) lane.renew();
	}

	return {
		async run(work, untilMs) {
			const leftMs = () => Math.max(0, untilMs - clock.monotonicMs());
			const lane = await acquire(leftMs());
			try {
				const answer = lane.run(work);
				return await withDeadline(clock, answer, leftMs(), () => {
					answer.catch(() => {
						// Already reported as a timeout; the discarded connection rejects it later.
					});
					if (!ended) discard(lane);
					return late();
				});
			} finally {
				release(lane);
			}
		},
		async end() {
			ended = true;
			await Promise.all(lanes.map((lane) => lane.end()));
		},
	};
}

const busy = () => new DatabaseBusy("too many statements wait for a connection");
const late = () => new DatabaseTimeout("the database did not answer in time");
