import { type Clock, sleep } from "../base/clock.ts";
import type { AppendedEntry } from "./control-log.ts";

/** A live instance that has not yet applied a control entry. */
export interface LaggingInstance {
	readonly id: string;
	readonly epoch: number;
	/** Number of its newest heartbeat; grows with each renewal of the lease. */
	readonly beat: number;
	readonly ttlMs: number;
	/** End of its lease by the database's wall clock, unless the lease is renewed; for display only. */
	readonly leaseUntilMs: number;
}

/** Statements of a fence. Each may be repeated, and any may throw. */
export interface FenceStore {
	/**
	 * Live instances that have not applied the entry. First fences those that another instance found silent. Throws if
	 * the server lacks the entry.
	 */
	lagging(entry: AppendedEntry): Promise<readonly LaggingInstance[]>;
	/** Fences an instance off, unless it has renewed its lease since that beat. */
	fenceOff(id: string, epoch: number, beat: number): Promise<void>;
	/** Label of the current server, and how long instances may still act on the previous one's entries (0: never). */
	server(): Promise<{ readonly mark: string; readonly unquietMs: number }>;
	/** Records that the caller has waited for all instances of the previous server. */
	quiet(mark: string): Promise<void>;
}

export interface FenceResult {
	/** True once no instance acts on a state before the entry. */
	readonly effective: boolean;
	readonly elapsedMs: number;
	readonly pending: readonly LaggingInstance[];
	/** Longest remaining wait, as far as known; 0 if the change is effective. */
	readonly leftMs: number;
}

export interface FenceOptions {
	/** Milliseconds after which the result is `effective: false`; Infinity: never. */
	deadlineMs: number;
	/** Milliseconds added to a lease before its holder counts as stopped, because clocks run at different speeds. */
	graceMs: number;
}

/** Allowance for a slow clock. In addition, an instance's gate closes before its lease ends by its own clock. */
export const FENCE_GRACE_MS = 1_000;

/** Pause between queries as a fraction of the time waited so far, so that the first queries are frequent. */
const POLL_SHARE = 0.25;
const POLL_MS_MIN = 1;
const POLL_MS_MAX = 100;
/** Consecutive failed queries after which the caller gets the error. */
const FAILURES_MAX = 10;
/** Longest time of failing queries, because a query without an answer fails only at its deadline. */
const FAILING_MS_MAX = FAILURES_MAX * POLL_MS_MAX;

/** Thrown if the database moved to another server, which may lack the change. */
class AnotherServer extends Error {
	override readonly name = "AnotherServer" as const;
}

/**
 * Waits until each live instance has applied the entry, or its lease is over. A lease is over when the caller has seen
 * the same beat for the lease's length, by its own monotonic clock. The lease's holder counts from before it sent that
 * beat, so it has stopped admitting. No wall clock is used, because a failover or correction can change the database's.
 * The holder is then fenced off and cannot renew; if it has just renewed, fencing finds another beat and the wait
 * continues. After a failover the server may lack the last commits, and so an instance; the caller then also waits for
 * the longest lease. Throws if the entry itself was lost; the caller must repeat the change.
 */
export async function waitUntilApplied(
	{ store, clock }: { store: FenceStore; clock: Clock },
	entry: AppendedEntry,
	options: FenceOptions,
): Promise<FenceResult> {
	const startedMs = clock.monotonicMs();
	const silences = createSilenceTimes(clock);
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
		// Queried after `lagging`, so that an answer of the previous server is not taken for one of the new server.
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
		// Not yet effective: only the next query shows whether the fencing succeeded.
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

/** Measures for how long each beat has been unchanged since it was first seen, by a monotonic clock. */
export function createSilenceTimes(clock: Clock) {
	const seen = new Map<string, { beat: number; sinceMs: number }>();
	return {
		ofMs(what: string, beat: number) {
			const nowMs = clock.monotonicMs();
			const known = seen.get(what);
			if (known?.beat === beat) return nowMs - known.sinceMs;
			seen.set(what, { beat, sinceMs: nowMs });
			return 0;
		},
		/** Forgets all beats except those in `what`. */
		keep(what: ReadonlySet<string>) {
			for (const name of seen.keys()) if (!what.has(name)) seen.delete(name);
		},
	};
}
