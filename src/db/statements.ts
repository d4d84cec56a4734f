import type { Clock } from "../base/clock.ts";
import { sleep, withDeadline } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Lane, StatementValue } from "./lane.ts";
import { createLane } from "./lane.ts";
import { DatabaseBusy, DatabaseTimeout } from "./outage.ts";

/**
 * A client of single statements that may be repeated, each with a deadline.
 *
 * It has no `begin`: on a pipelined client a BEGIN can be sent without its connection being reserved, and then the
 * acknowledged statements of strangers are rolled back with it. It is a template function alone, so the type forbids it.
 */
export interface Statements {
	<Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]): Promise<Row[]>;
	/** Ends all connections; statements under way are rejected. */
	end(): Promise<void>;
}

export interface StatementsOptions {
	url: string;
	connectionsMax: number;
	/** After it the statement is given up, its connection discarded and a new one made. */
	statementDeadlineMs: number;
	/**
	 * The server gives a statement up that waits for a lock so long; nothing of it was carried out, and it is sent again
	 * until its deadline. So a row that somebody holds keeps a connection from nobody for longer than this.
	 */
	lockTimeoutMs?: number;
	applicationName: string;
}

const LOCK_TIMEOUT_MS = 500;
/** Between two attempts at a lock the connection is for others. */
const LOCK_PAUSE_MS = 50;
/** Statements that wait for a connection; each is given up at its own deadline. */
const WAITING_MAX = 20_000;
/** SQLSTATE lock_not_available, also what our own functions say of a row that is held. */
const LOCK_NOT_AVAILABLE = "55P03";

/**
 * One statement at a time on each connection: what waits for a lock, or for an answer that never comes, holds up no
 * other statement behind it, and a connection that is stuck is given up alone.
 */
export function createStatements(deps: { clock: Clock; log: Log }, options: StatementsOptions): Statements {
	const { clock, log } = deps;
	const lockTimeoutMs = options.lockTimeoutMs ?? LOCK_TIMEOUT_MS;
	const lanes = Array.from({ length: options.connectionsMax }, () =>
		createLane({ log }, { ...options, lockTimeoutMs }),
	);
	/** The one used last is on top, so that a quiet service keeps few connections warm. */
	const free: Lane[] = [...lanes];
	const waiting: ((lane: Lane) => void)[] = [];
	let ended = false;

	async function acquire(waitMs: number): Promise<Lane> {
		const lane = free.pop();
		if (lane) return lane;
		if (waiting.length >= WAITING_MAX) throw new DatabaseBusy("too many statements wait for a connection");
		const { promise, resolve } = Promise.withResolvers<Lane>();
		waiting.push(resolve);
		try {
			return await withDeadline(clock, promise, waitMs, late);
		} catch (error) {
			const at = waiting.indexOf(resolve);
			if (at >= 0) waiting.splice(at, 1);
			// It had its turn in the same moment.
			else void promise.then(release);
			throw error;
		}
	}

	function release(lane: Lane): void {
		const next = waiting.shift();
		if (next) next(lane);
		else free.push(lane);
	}

	/** What has gone silent on one connection has probably on all: those that nobody uses are made anew, too. */
	function discard(stuck: Lane): void {
		stuck.renew();
		for (const lane of free) lane.renew();
	}

	async function attempt<Row>(
		strings: TemplateStringsArray,
		values: readonly StatementValue[],
		untilMs: number,
	): Promise<Row[]> {
		const leftMs = () => Math.max(0, untilMs - clock.monotonicMs());
		const lane = await acquire(leftMs());
		try {
			const query = lane.run<Row>(strings, values);
			return await withDeadline(clock, query, leftMs(), () => {
				query.catch(() => {
					// Already reported as a timeout; the discarded connection rejects it later.
				});
				if (!ended) discard(lane);
				return late();
			});
		} finally {
			release(lane);
		}
	}

	async function run<Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]): Promise<Row[]> {
		const untilMs = clock.monotonicMs() + options.statementDeadlineMs;
		for (;;) {
			try {
				return await attempt<Row>(strings, values, untilMs);
			} catch (error) {
				if (!isLockHeld(error)) throw error;
				if (clock.monotonicMs() + LOCK_PAUSE_MS + lockTimeoutMs > untilMs)
					throw new DatabaseBusy("a row that the statement needs is held", { cause: error });
				await sleep(clock, LOCK_PAUSE_MS);
			}
		}
	}

	return Object.assign(run, {
		async end() {
			ended = true;
			await Promise.all(lanes.map((lane) => lane.end()));
		},
	});
}

const late = () => new DatabaseTimeout("the database did not answer in time");

function isLockHeld(error: unknown): boolean {
	return (error as { code?: unknown } | null)?.code === LOCK_NOT_AVAILABLE;
}
