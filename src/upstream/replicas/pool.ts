import type { Clock } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { BreakerCall } from "./breaker.ts";
import { createPatientCalls } from "./patient-calls.ts";
import type { Replica } from "./replica.ts";
import { type AcquireOptions, createTicket, type PatientCall, type Ticket, type TicketOwner } from "./ticket.ts";
import { createWaitingLines, type Waiter } from "./waiting-lines.ts";

/**
 * The replicas of one model and the requests that wait for a place at them. Places go to accounts by turns, however many
 * requests each has waiting: first to who holds the fewest. One account holds at most its share (`account_share`) of the
 * places that there are at the time, so that others find one at once or as soon as any of theirs comes free. The queue
 * is shared alike: when it is full, the longest line loses its last for a shorter one's first.
 */
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
	/** Whether somebody waits because all places are taken. */
	contended(): boolean;
	/**
	 * Resolves with how many lines of batches others leave places for beyond the `taken` ones, once it is one at least;
	 * rejects when `signal` aborts. `wake` has it look again.
	 */
	room(taken: () => number, signal: AbortSignal): Promise<number>;
	/** Sends everybody away who waits. */
	close(): void;
}

/** The preferred replica keeps a request unless it has this much more of its capacity in use than the least busy one. */
const AFFINITY_SLACK_SHARE = 0.25;
const RETRY_AFTER_S_MIN = 1;

export function createPool(deps: { clock: Clock }, options: { limits: () => ServiceLimits }): Pool {
	const { clock } = deps;
	const { limits } = options;
	let replicas: readonly Replica[] = [];
	/** Places of each account that has any. */
	const held = new Map<string, number>();
	const lines = createWaitingLines((accountId) => held.get(accountId) ?? 0);
	const patient = createPatientCalls();
	const owner: TicketOwner = { giveBack, wake };
	/** Where the search for the least busy begins, so that equals take turns. */
	let turn = 0;

	function acquire(wanted: AcquireOptions): Ticket | Promise<Ticket> {
		// What is left then is a place that nobody who waits can use.
		wake();
		const replica = wanted.patient === true ? choosePatient(wanted) : choose(wanted);
		if (replica !== undefined) return ticketOf(replica, wanted);
		if (!hasUsable(wanted.exclude, wanted.accountId)) throw unavailable(wanted.accountId);
		if (wanted.patient === true) return wait(wanted);
		if (lines.size() >= limits().queueLengthMax) {
			const last = lines.displaced(wanted.accountId);
			if (last === undefined) throw overloaded();
			last.refuse(overloaded());
		}
		return wait(wanted);
	}

	/** Behind everybody who waits. */
	function choosePatient({ exclude, accountId }: AcquireOptions): Replica | undefined {
		return lines.size() > 0 ? undefined : patient.choose(replicas, exclude, accountId);
	}

	/** Whether the account holds all the places that it may, of those that there are now. */
	function hasItsShare(accountId: string): boolean {
		const { accountShare } = limits();
		const places = held.get(accountId);
		if (places === undefined || accountShare === 1) return false;
		let all = 0;
		for (const replica of replicas) if (replica.takesCalls()) all += replica.capacity();
		return places >= Math.max(1, Math.floor(all * accountShare));
	}

	function choose({ affinity, exclude, accountId }: AcquireOptions): Replica | undefined {
		if (hasItsShare(accountId)) return undefined;
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

	/** Places of lines of batches are not its account's: they are nobody's whom another waits for. */
	function count(accountId: string, change: 1 | -1): void {
		const places = (held.get(accountId) ?? 0) + change;
		if (places > 0) held.set(accountId, places);
		else held.delete(accountId);
		lines.goBehind(accountId);
	}

	function ticketOf(replica: Replica, { accountId, patient: isLine = false, onAsked }: AcquireOptions): Ticket {
		const call = replica.begin(accountId);
		const line = isLine ? patient.begin(replica, onAsked) : undefined;
		if (line === undefined) count(accountId, 1);
		return createTicket(owner, replica, call, line);
	}

	function giveBack({ accountId }: BreakerCall, line: PatientCall | undefined): void {
		if (line === undefined) count(accountId, -1);
		else line.end();
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
			const isLine = wanted.patient === true;
			const cancel = isLine ? () => {} : clock.after(limits().queueWaitMs, () => waiter.refuse(overloaded()));
			const onAbort = () => waiter.refuse(wanted.signal.reason);
			const leave = () => {
				if (isLine) patient.waiting.delete(waiter);
				else lines.remove(waiter);
				cancel();
				wanted.signal.removeEventListener("abort", onAbort);
			};
			if (wanted.signal.aborted) return onAbort();
			wanted.signal.addEventListener("abort", onAbort, { once: true });
			if (isLine) return void patient.waiting.add(waiter);
			lines.add(waiter);
			if (!hasItsShare(wanted.accountId)) askForPlace(wanted);
		});
	}

	/** A line of a batch that has a place which this request could have gives it up. */
	function askForPlace({ exclude, accountId }: AcquireOptions): void {
		patient.askOne(replicas.filter((replica) => !exclude.has(replica) && replica.usable(accountId)));
	}

	/** Gives out the places that there are, one at a time, since each changes whose turn it is. */
	function wake(): void {
		while (lines.size() > 0 && serveNext());
		if (patient.waiting.size > 0) servePatient();
		if (patient.watching.size > 0) for (const look of patient.watching) look();
	}

	/** What is left goes to lines of batches. */
	function servePatient(): void {
		for (const waiter of patient.waiting) {
			const { options } = waiter;
			const replica = choosePatient(options);
			if (replica !== undefined) waiter.serve(ticketOf(replica, options));
			else if (!hasUsable(options.exclude, options.accountId)) waiter.refuse(unavailable(options.accountId));
			else if (options.exclude.size === 0) return;
		}
	}

	/**
	 * Whether anybody was served. Its cost grows with the accounts that wait, at most `queue_length`, and only when there
	 * is a place to give or a server fails.
	 */
	function serveNext(): boolean {
		if (allTaken()) return false;
		for (const line of lines.inTurn())
			for (const waiter of line) {
				const { options } = waiter;
				const replica = choose(options);
				if (replica !== undefined) {
					waiter.serve(ticketOf(replica, options));
					return true;
				}
				if (!hasUsable(options.exclude, options.accountId)) waiter.refuse(unavailable(options.accountId));
				// Its account has no place to hope for: the rest of its line need not be asked.
				else if (options.exclude.size === 0) break;
			}
		return false;
	}

	/** Whether there are servers that take calls, and none of them has a place left. */
	function allTaken(): boolean {
		let some = false;
		for (const replica of replicas) {
			if (!replica.takesCalls()) continue;
			if (replica.inFlight() < replica.capacity()) return false;
			some = true;
		}
		return some;
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
		waiting: lines.size,
		room: (taken, signal) =>
			new Promise((resolve, reject) => {
				const look = () => {
					const room = lines.size() > 0 ? 0 : patient.places(replicas) - taken();
					if (room > 0) leave(() => resolve(room));
				};
				const leave = (then: () => void) => {
					patient.watching.delete(look);
					signal.removeEventListener("abort", onAbort);
					then();
				};
				const onAbort = () => leave(() => reject(signal.reason));
				if (signal.aborted) return reject(signal.reason);
				signal.addEventListener("abort", onAbort, { once: true });
				patient.watching.add(look);
				look();
			}),
		contended: () => lines.size() > 0 && allTaken(),
		close() {
			replicas = [];
			for (const line of lines.inTurn())
				for (const waiter of line) waiter.refuse(unavailable(waiter.options.accountId));
			for (const waiter of patient.waiting) waiter.refuse(unavailable(waiter.options.accountId));
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
