import type { Clock } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { CallOutcome } from "./breaker.ts";
import type { Replica } from "./replica.ts";

/** A place at a replica, held from before the request is sent until `release`. */
export interface Ticket {
	readonly replica: Replica;
	/** Tells that the replica answers: with the first event, and with each further one. */
	answered(): void;
	/** Gives the place back and the outcome to the breaker. Only the first call counts. */
	release(outcome: CallOutcome): void;
	/** After a release as `suspect`, once it is known whose fault it was. */
	judge(verdict: "failed" | "neutral"): void;
	/** See `Breaker`. */
	otherFailureAtMs(): number | undefined;
}

export interface AcquireOptions {
	/** Requests with the same key prefer the same replica, which has their prefix in its cache. */
	readonly affinity: string | undefined;
	/** Replicas that this request has already failed on. */
	readonly exclude: ReadonlySet<Replica>;
	readonly signal: AbortSignal;
	/** Whose request it is. */
	readonly accountId: string;
}

/** The replicas of one model and the requests that wait for a place at them. */
export interface Pool {
	/**
	 * A place at once where there is one; a promise only if the request has to wait. Throws (or rejects with) Fault
	 * `service_unavailable` if no replica may be used, `overloaded` if too many wait or the wait was too long, and with
	 * the signal's reason when the client leaves.
	 */
	acquire(options: AcquireOptions): Ticket | Promise<Ticket>;
	/** Whether any replica outside `exclude` may take calls of this account, full or not. */
	hasUsable(exclude: ReadonlySet<Replica>, accountId: string): boolean;
	/** Monotonic time at which some replica last answered a request; undefined if none ever did. */
	answeredAtMs(): number | undefined;
	replicas(): readonly Replica[];
	/** Swaps the replicas; the ones left out are drained. */
	replace(replicas: readonly Replica[]): void;
	/** Looks again whether waiting requests can go on: a replica's state changed. */
	wake(): void;
	waiting(): number;
	/** Sends everybody away who waits. */
	close(): void;
}

interface Waiter {
	readonly options: AcquireOptions;
	readonly serve: (ticket: Ticket) => void;
	readonly refuse: (fault: Error) => void;
}

/** The preferred replica keeps a request unless it has this much more of its capacity in use than the least busy one. */
const AFFINITY_SLACK_SHARE = 0.25;
const RETRY_AFTER_S_MIN = 1;

export function createPool(deps: { clock: Clock }, options: { limits: () => ServiceLimits }): Pool {
	const { clock } = deps;
	const { limits } = options;
	let replicas: readonly Replica[] = [];
	/** First in, first out; a waiter that only excluded replicas could serve is passed over. */
	const queue = new Set<Waiter>();
	/** Where the search for the least busy begins, so that equals take turns. */
	let turn = 0;

	function acquire(wanted: AcquireOptions): Ticket | Promise<Ticket> {
		if (queue.size === 0) {
			const replica = choose(wanted);
			if (replica !== undefined) return ticketOf(replica, wanted);
		}
		if (!hasUsable(wanted.exclude, wanted.accountId)) throw unavailable(wanted.accountId);
		if (queue.size >= limits().queueLengthMax) throw overloaded();
		return wait(wanted);
	}

	function choose({ affinity, exclude, accountId }: AcquireOptions): Replica | undefined {
		const count = replicas.length;
		if (count === 1) {
			const only = replicas[0] as Replica;
			return only.hasPlace(accountId) && !exclude.has(only) ? only : undefined;
		}
		let least: Replica | undefined;
		let leastLoad = Number.POSITIVE_INFINITY;
		turn = (turn + 1) % Math.max(count, 1);
		for (let step = 0; step < count; step += 1) {
			const replica = replicas[(turn + step) % count] as Replica;
			if (exclude.has(replica) || !replica.hasPlace(accountId)) continue;
			const load = loadOf(replica);
			if (load < leastLoad) {
				least = replica;
				leastLoad = load;
			}
		}
		if (affinity === undefined || least === undefined) return least;
		const preferred = preferredOf(affinity, replicas, { exclude, accountId });
		if (preferred === undefined || !preferred.hasPlace(accountId)) return least;
		return loadOf(preferred) <= leastLoad + AFFINITY_SLACK_SHARE ? preferred : least;
	}

	function ticketOf(replica: Replica, { accountId }: AcquireOptions): Ticket {
		const call = replica.begin(accountId);
		let held = true;
		return {
			replica,
			answered: () => {
				if (held) replica.answered(call);
			},
			release(outcome) {
				if (!held) return;
				held = false;
				replica.end(call, outcome);
				if (queue.size > 0) wake();
			},
			judge: (verdict) => replica.judge(call, verdict),
			otherFailureAtMs: () => replica.otherFailureAtMs(call),
		};
	}

	function wait(wanted: AcquireOptions): Promise<Ticket> {
		return new Promise<Ticket>((resolve, reject) => {
			const waiter: Waiter = {
				options: wanted,
				serve(ticket) {
					leave();
					resolve(ticket);
				},
				refuse(error) {
					leave();
					reject(error);
				},
			};
			const cancel = clock.after(limits().queueWaitMs, () => waiter.refuse(overloaded()));
			const onAbort = () => waiter.refuse(wanted.signal.reason);
			const leave = () => {
				queue.delete(waiter);
				cancel();
				wanted.signal.removeEventListener("abort", onAbort);
			};
			if (wanted.signal.aborted) return onAbort();
			wanted.signal.addEventListener("abort", onAbort, { once: true });
			queue.add(waiter);
			// A replica may have a place that the queue ahead of this request cannot use.
			wake();
		});
	}

	function wake(): void {
		for (const waiter of queue) {
			const replica = choose(waiter.options);
			if (replica !== undefined) waiter.serve(ticketOf(replica, waiter.options));
			else if (!hasUsable(waiter.options.exclude, waiter.options.accountId))
				waiter.refuse(unavailable(waiter.options.accountId));
			// Nobody has a place: the rest of the queue need not be asked.
			else if (waiter.options.exclude.size === 0) return;
		}
	}

	function hasUsable(exclude: ReadonlySet<Replica>, accountId: string): boolean {
		for (const replica of replicas) if (!exclude.has(replica) && replica.usable(accountId)) return true;
		return false;
	}

	function unavailable(accountId: string): Fault {
		let coolMs = Number.POSITIVE_INFINITY;
		for (const replica of replicas) {
			const left = replica.coolMsLeft(accountId);
			if (left > 0) coolMs = Math.min(coolMs, left);
		}
		const retryAfterS = Number.isFinite(coolMs)
			? Math.max(RETRY_AFTER_S_MIN, Math.ceil(coolMs / 1000))
			: RETRY_AFTER_S_MIN;
		return new Fault("service_unavailable", "No server for this model is available at the moment.", { retryAfterS });
	}

	return {
		acquire,
		hasUsable,
		answeredAtMs() {
			const times = replicas.flatMap((replica) => replica.answeredAtMs() ?? []);
			return times.length === 0 ? undefined : Math.max(...times);
		},
		replicas: () => replicas,
		replace(next) {
			for (const replica of replicas) if (!next.includes(replica)) replica.drain();
			replicas = next;
			wake();
		},
		wake,
		waiting: () => queue.size,
		close() {
			replicas = [];
			for (const waiter of queue) waiter.refuse(unavailable(waiter.options.accountId));
		},
	};
}

/** Share of the capacity in use if one more call came. */
function loadOf(replica: Replica): number {
	return (replica.inFlight() + 1) / replica.capacity();
}

/**
 * Highest hash of key and replica (rendezvous hashing): a replica that comes or goes moves only the conversations
 * that are its own.
 */
function preferredOf(
	affinity: string,
	replicas: readonly Replica[],
	{ exclude, accountId }: Pick<AcquireOptions, "exclude" | "accountId">,
): Replica | undefined {
	let best: Replica | undefined;
	let bestHash = -1n;
	for (const replica of replicas) {
		if (exclude.has(replica) || !replica.usable(accountId)) continue;
		const hash = Bun.hash.wyhash(`${affinity}\n${replica.alias}`);
		if (hash > bestHash) {
			best = replica;
			bestHash = hash;
		}
	}
	return best;
}

function overloaded(): Fault {
	return new Fault("overloaded", "All servers for this model are busy. Try again shortly.", {
		retryAfterS: RETRY_AFTER_S_MIN,
	});
}
