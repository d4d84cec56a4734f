import type postgres from "postgres";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { connectionEnded, isConnectionLost, isOfServer } from "./outage.ts";
import { createReconnectBackoff, type ReconnectBackoff } from "./reconnect-backoff.ts";

/** One connection to the database, made when it is first used and again whenever it broke. */
export interface Connection {
	/** One at a time. */
	run<T>(work: (client: postgres.Sql) => PromiseLike<T>): Promise<T>;
	/** Gives the connection up, with what is under way on it; what comes next makes a new one. */
	renew(): void;
	end(): Promise<void>;
}

/** Options of the driver by which a client reports to its connection. */
export interface ClientHooks {
	/** The connection is gone. */
	onclose(): void;
	readonly transform: { row<Row>(row: Row): Row };
}

/** Makes a client for one connection. */
export type Connect = (hooks: ClientHooks, backoff: ReconnectBackoff) => postgres.Sql;

interface OpenConnection {
	readonly client: postgres.Sql;
	/** Of what was asked last. */
	rows: number;
	/** By the monotonic clock. */
	readonly untilMs: number;
}

/** Then a connection is made anew, so that a server's process does not hoard, and a proxy's choice of a server is made again. */
const LIFE_MS_MIN = 30 * 60_000;
const LIFE_MS_MAX = 60 * 60_000;

/** `connect` makes its clients, one after the other; a connection that nobody uses for `idleMs` is closed. */
export function createConnection(deps: { log: Log }, connect: Connect, idleMs = LIFE_MS_MAX): Connection {
	const backoff = createReconnectBackoff(systemClock.monotonicMs);
	let current: OpenConnection | undefined;
	let cancelRest = () => {};
	let ended = false;

	function open(): OpenConnection {
		const lifeMs = LIFE_MS_MIN + Math.random() * (LIFE_MS_MAX - LIFE_MS_MIN);
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
		const opened: OpenConnection = {
			client: connect(hooks, backoff),
			rows: 0,
			untilMs: systemClock.monotonicMs() + lifeMs,
		};
		return opened;
	}

	function renew(): void {
		cancelRest();
		current?.client
			.end({ timeout: 0 })
			.catch((error) => deps.log.debug("closing a stuck database connection failed", { error }));
		current = undefined;
	}

	function rest({ untilMs }: OpenConnection): void {
		cancelRest();
		cancelRest = systemClock.after(Math.min(idleMs, Math.max(0, untilMs - systemClock.monotonicMs())), renew);
	}

	return {
		async run(work) {
			if (ended) throw connectionEnded();
			cancelRest();
			if (current !== undefined && current.untilMs <= systemClock.monotonicMs()) renew();
			current ??= open();
			const used = current;
			used.rows = 0;
			try {
				return await work(used.client);
			} catch (error) {
				if (current === used && !ended && leavesTraces(error, used)) renew();
				throw error;
			} finally {
				if (current === used && !ended) rest(used);
			}
		},
		renew,
		async end() {
			ended = true;
			cancelRest();
			await current?.client.end({ timeout: 1 });
		},
	};
}

/**
 * The driver keeps what the server said last, and fails the next statement with it. Of rows that came before an error it keeps
 * the number, and puts those of the next statement behind as many that are none.
 */
function leavesTraces(error: unknown, { rows }: OpenConnection): boolean {
	return isConnectionLost(error) || (rows > 0 && isOfServer(error));
}
