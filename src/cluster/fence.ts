import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { AppendedEntry } from "./control-log.ts";

/** A live instance that has not applied an entry yet. */
export interface LaggingInstance {
	readonly id: string;
	readonly epoch: number;
	/** Grows with each renewal of its lease. */
	readonly beat: number;
	readonly ttlMs: number;
	/** When its lease runs out by the database's wall clock, unless it renews it: for people. */
	readonly leaseUntilMs: number;
}

/** What a fence asks of the database; every call may be repeated and may throw. */
export interface FenceStore {
	/**
	 * Live instances that lag behind the entry, after fencing off those that another instance found silent. Throws if the
	 * server does not have that very entry.
	 */
	lagging(entry: AppendedEntry): Promise<readonly LaggingInstance[]>;
	/** Fences an instance off unless it has renewed its lease since that beat. */
	fenceOff(id: string, epoch: number, beat: number): Promise<void>;
	/** The server, and for how long instances may act by what another one told them; 0 if they cannot. */
	server(): Promise<{ readonly mark: string; readonly unquietMs: number }>;
	/** The caller has waited for so long. */
	quiet(mark: string): Promise<void>;
}

export interface FenceResult {
	/** True once no instance acts by anything older than the entry. */
	readonly effective: boolean;
	readonly elapsedMs: number;
	readonly pending: readonly LaggingInstance[];
	/** How much longer it can take at most, by what is known now; 0 if it is effective. */
	readonly leftMs: number;
}

export interface FenceOptions {
	/** Gives up after it with `effective: false`; Infinity never does. */
	deadlineMs: number;
	/** Added to a lease before its holder is taken for stopped; covers clocks that run at different rates. */
	graceMs: number;
}

/** An instance closes its gate before its lease ends by its own clock; this covers a clock that runs slower. */
export const FENCE_GRACE_MS = 1_000;

/** How long the caller waits between two questions: a fixed share of what it has waited, so that it hears soon. */
const POLL_SHARE = 0.25;
const POLL_MS_MIN = 1;
const POLL_MS_MAX = 100;
/** The question may be asked again; if it fails this often in a row, the caller hears of it. */
const FAILURES_MAX = 10;
/** Nor for longer than the deadline: a question whose answer does not come fails late. This much it is given in any case. */
const FAILING_MS_MAX = FAILURES_MAX * POLL_MS_MAX;

/** The one that took over may lack the act that is waited for. */
class AnotherServer extends Error {
	override readonly name = "AnotherServer" as const;
}

/**
 * Waits until each live instance has applied the control log up to the entry or its lease is over.
 *
 * A lease is over when the caller has seen the same beat for as long as the lease is, by his own monotonic clock: its
 * holder counts from before it sent that beat, so it has stopped admitting by then. No wall clock matters, neither the
 * database's, which a failover or a correction can set forward, nor anybody else's. The holder is then fenced off: it
 * cannot renew any more, and if it did in the last moment, the fencing finds another beat and the wait goes on.
 *
 * A server that the database has not lived on before may lack the last commits of the one before it, an instance
 * among them. So on a new one the caller also waits for as long as the longest lease. The act itself may be lost, whether
 * it took over before the first question or during the wait: that is an error, and the act is to be done again.
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
			: // The database did not answer: it is given a second in all.
				POLL_MS_MAX;
		if (look && elapsedMs + pollMs > options.deadlineMs) return { ...look, elapsedMs };
		await sleep(clock, pollMs);
	}

	async function lookOnce(): Promise<Omit<FenceResult, "elapsedMs">> {
		const pending = await store.lagging(entry);
		// Behind it, so that nobody's answer is taken for that of the server before.
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
		// Whether those that were fenced off just now really were is seen at the next look.
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

/** How long something has been seen unchanged, by a monotonic clock: counted from after it was first seen. */
export interface Silences {
	ofMs(what: string, beat: number): number;
	/** Forgets all but these. */
	keep(what: ReadonlySet<string>): void;
}

export function createSilences(clock: Clock): Silences {
	const seen = new Map<string, { beat: number; sinceMs: number }>();
	return {
		ofMs(what, beat) {
			const nowMs = clock.monotonicMs();
			const known = seen.get(what);
			if (known?.beat === beat) return nowMs - known.sinceMs;
			seen.set(what, { beat, sinceMs: nowMs });
			return 0;
		},
		keep(what) {
			for (const name of seen.keys()) if (!what.has(name)) seen.delete(name);
		},
	};
}
