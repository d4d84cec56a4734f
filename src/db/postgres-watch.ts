import type { Clock } from "../base/clock.ts";
import type { FileLock } from "../base/file-lock.ts";
import type { Log } from "../base/log.ts";
import { type PostgresHome, startUnlessRunning } from "./postgres-start.ts";
import { findPostmaster } from "./postmaster.ts";

export interface PostgresWatch {
	/** Ends the watch. A start in progress is abandoned as soon as the server can be found and stopped. */
	stop(): Promise<void>;
}

const CHECK_MS = 1_000;
const WAIT_MS_MAX = 30_000;
/** A server that lived this long after its restart may be started again at once. */
const STABLE_MS = 30_000;

/**
 * Starts the server again if it dies (`kill -9`, out of memory), on the port that its users know: their clients
 * reconnect by themselves. Every user of the server watches it; `startLock` lets one of them act. If a server keeps
 * dying, or another program took its port, the pauses grow to 30 seconds.
 */
export function watchPostmaster(
	{ log, clock }: { log: Log; clock: Clock },
	options: {
		readonly home: PostgresHome;
		readonly port: number;
		readonly startLock: () => FileLock | undefined;
	},
): PostgresWatch {
	const { home, port } = options;
	let stopped = false;
	let restartsInRow = 0;
	let restartedAtMs = Number.NEGATIVE_INFINITY;
	let looking: Promise<void> = Promise.resolve();
	let cancel = later(CHECK_MS);

	function later(delayMs: number): () => void {
		return clock.after(delayMs, () => {
			looking = look();
		});
	}

	async function look(): Promise<void> {
		try {
			if (findPostmaster(home.cluster) === undefined) await restart();
			if (clock.monotonicMs() - restartedAtMs > STABLE_MS) restartsInRow = 0;
		} catch (error) {
			if (!stopped) log.error("the embedded PostgreSQL could not be started again", { error, waitMs: waitMs() });
		}
		if (!stopped) cancel = later(waitMs());
	}

	function waitMs(): number {
		return Math.min(WAIT_MS_MAX, CHECK_MS * 2 ** restartsInRow);
	}

	async function restart(): Promise<void> {
		const lock = options.startLock();
		// Another user of the server handles it.
		if (lock === undefined) return;
		try {
			if (findPostmaster(home.cluster) !== undefined) return;
			restartsInRow += 1;
			restartedAtMs = clock.monotonicMs();
			log.warn("the embedded PostgreSQL died; starting it again", { port });
			const { pid } = await startUnlessRunning(log, home, { port, isGivenUp: () => stopped });
			log.info("the embedded PostgreSQL runs again", { port, pid, tookMs: clock.monotonicMs() - restartedAtMs });
		} finally {
			lock.release();
		}
	}

	return {
		stop() {
			stopped = true;
			cancel();
			return looking;
		},
	};
}
