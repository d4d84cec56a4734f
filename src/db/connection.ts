import type postgres from "postgres";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { connectionEnded, isConnectionLost, isOfServer } from "./outage.ts";
import { createReconnectBackoff, type ReconnectBackoff } from "./reconnect-backoff.ts";

export type Connection = ReturnType<typeof createConnection>;

/** Options by which the driver reports received rows and a closed connection. */
interface ClientHooks {
	onclose(): void;
	readonly transform: { row<Row>(row: Row): Row };
}

export type Connect = (hooks: ClientHooks, backoff: ReconnectBackoff) => postgres.Sql;

interface OpenConnection {
	readonly client: postgres.Sql;
	/** Number of rows that the last statement returned. */
	rows: number;
	/** When the connection is to be replaced, by the monotonic clock. */
	readonly untilMs: number;
}

/** Age at which connections are replaced: server processes grow, and a proxy can then choose another server. */
const LIFE_MS_MIN = 30 * 60_000;
const LIFE_MS_MAX = 60 * 60_000;

/**
 * A connection to the database, opened on first use and again after it broke, and closed after `idleMs` without work.
 */
export function createConnection(deps: { log: Log }, connect: Connect, idleMs = LIFE_MS_MAX) {
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
		/** Runs one piece of work at a time. */
		async run<T>(work: (client: postgres.Sql) => PromiseLike<T>): Promise<T> {
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
		/** Drops the connection and the work on it; the next call opens a new one. */
		renew,
		async end() {
			ended = true;
			cancelRest();
			await current?.client.end({ timeout: 1 });
		},
	};
}

/**
 * Whether the driver will fail the next statement: it keeps a server's last error. It also keeps the count of rows
 * received before an error, and puts as many empty rows before those of the next statement.
 */
function leavesTraces(error: unknown, { rows }: OpenConnection): boolean {
	return isConnectionLost(error) || (rows > 0 && isOfServer(error));
}
