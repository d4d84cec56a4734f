import { type Clock, sleep } from "../base/clock.ts";
import type { AppendedEntry } from "./control-log.ts";

/** A live instance that has not applied an entry yet. */
export interface LaggingInstance {
	readonly id: string;
	readonly epoch: number;
	/** Grows with each renewal of its lease. */
	readonly beat: number;
	readonly ttlMs: number;
	/** When its lease expires by the database's wall clock, unless renewed: for display. */
	readonly leaseUntilMs: number;
}

/** A fence's statements; each may be repeated and may throw. */
export interface FenceStore {
	/**
	 * Live instances without the entry, after fencing off those that another found silent. Throws if the server lacks
	 * that exact entry.
	 */
	lagging(entry: AppendedEntry): Promise<readonly LaggingInstance[]>;
	/** Fences an instance off unless it has renewed its lease since that beat. */
	fenceOff(id: string, epoch: number, beat: number): Promise<void>;
	/** The server, and for how long instances may act on entries of the former server; 0 if they cannot. */
	server(): Promise<{ readonly mark: string; readonly unquietMs: number }>;
	/** Records that the caller has waited that long. */
	quiet(mark: string): Promise<void>;
}

export interface FenceResult {
	/** True once no instance acts on anything older than the entry. */
	readonly effective: boolean;
	readonly elapsedMs: number;
	readonly pending: readonly LaggingInstance[];
	/** How much longer it can take at most, by what is known now; 0 if it is effective. */
	readonly leftMs: number;
}

export interface FenceOptions {
	/** Gives up after it with `effective: false`; Infinity never does. */
	deadlineMs: number;
	/** Added to a lease before its holder counts as stopped; covers clocks that run at different rates. */
	graceMs: number;
}

/** An instance closes its gate before its lease ends by its own clock; this covers a slower clock. */
export const FENCE_GRACE_MS = 1_000;

/** Pause between two queries: a fixed share of the time waited so far, so that the caller gets an early result. */
const POLL_SHARE = 0.25;
const POLL_MS_MIN = 1;
const POLL_MS_MAX = 100;
/** A query may be repeated; after this many failures in a row the caller receives the error. */
const FAILURES_MAX = 10;
/** Queries without an answer fail late: they may take as long as the deadline, and at least this long. */
const FAILING_MS_MAX = FAILURES_MAX * POLL_MS_MAX;

/** The server that took over may lack the awaited act. */
class AnotherServer extends Error {
	override readonly name = "AnotherServer" as const;
}

/**
 * Waits until each live instance has applied the control log up to the entry, or its lease is over. A lease is over
 * when the caller has seen the same beat for the length of the lease, by its own monotonic clock. The holder counts
 * from before it sent that beat, so it has stopped admitting by then. No wall clock matters: a failover or a correction
 * can set the database's forward. The holder is then fenced off and cannot renew. If it renewed in the last moment,
 * fencing finds another beat and the wait goes on. A server new to this database may lack the former server's last
 * commits, among them an instance. So there the caller also waits for the longest lease. If the act itself is lost, by
 * a takeover before the first query or during the wait, this throws, and the caller must repeat the act.
 */
export async function waitApplied(
	deps: { store: FenceStore; clock: Clock },
	entry: AppendedEntry,
	options: FenceOptions,
): Promise<FenceResult> {
	const { store, clock } = deps;
	const startedMs = clock.monotonicMs();
	const silences = createSilences(clock);
	let failures = 0;
	let mark: string | undefined;
	for (;;) {
		const look = await lookOnce().catch((error: unknown) => {
			if (error instanceof AnotherServer) throw error;
			failures += 1;
			const waitedMs = clock.monotonicMs() - startedMs;
			if (failures >= FAILURES_MAX || waitedMs > Math.max(options.deadlineMs, FAILING_MS_MAX)) throw error;
			return undefined;
		});
		const elapsedMs = clock.monotonicMs() - startedMs;
		if (look) {
			failures = 0;
			if (look.effective) return { ...look, elapsedMs };
		}
		const pollMs = look
			? Math.min(POLL_MS_MAX, Math.max(POLL_MS_MIN, elapsedMs * POLL_SHARE))
			: // Without an answer: retries take a second in all.
				POLL_MS_MAX;
		if (look && elapsedMs + pollMs > options.deadlineMs) return { ...look, elapsedMs };
		await sleep(clock, pollMs);
	}

	async function lookOnce(): Promise<Omit<FenceResult, "elapsedMs">> {
		const pending = await store.lagging(entry);
		// Read after `lagging`, so that an answer of the former server is not taken for the new one's.
		const server = await store.server();
		mark ??= server.mark;
		if (mark !== server.mark) throw new AnotherServer("another server took over, which may not know the change");
		const leftMs = [await serverLeftMs(server)];
		const over: LaggingInstance[] = [];
		for (const instance of pending) {
			const { id, epoch, beat, ttlMs } = instance;
			const untilOverMs = ttlMs + options.graceMs - silences.ofMs(`${id} ${epoch}`, beat);
			if (untilOverMs <= 0) over.push(instance);
			leftMs.push(Math.max(0, untilOverMs));
		}
		for (const { id, epoch, beat } of over) await store.fenceOff(id, epoch, beat);
		const mostMs = Math.max(...leftMs);
		// The next look shows whether the fencing took effect.
		return { effective: pending.length === 0 && mostMs === 0, pending, leftMs: mostMs };
	}

	async function serverLeftMs({ mark, unquietMs }: { mark: string; unquietMs: number }): Promise<number> {
		if (unquietMs === 0) return 0;
		const leftMs = unquietMs + options.graceMs - silences.ofMs(`server ${mark}`, 0);
		if (leftMs > 0) return leftMs;
		await store.quiet(mark);
		return 0;
	}
}

/** How long a beat has been seen unchanged, by a monotonic clock, counted from after it was first seen. */
export function createSilences(clock: Clock) {
	const seen = new Map<string, { beat: number; sinceMs: number }>();
	return {
		ofMs(what: string, beat: number) {
			const nowMs = clock.monotonicMs();
			const known = seen.get(what);
			if (known?.beat === beat) return nowMs - known.sinceMs;
			seen.set(what, { beat, sinceMs: nowMs });
			return 0;
		},
		/** Forgets all others. */
		keep(what: ReadonlySet<string>) {
			for (const name of seen.keys()) if (!what.has(name)) seen.delete(name);
		},
	};
}
