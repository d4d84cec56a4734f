import type { Clock } from "../../base/clock.ts";
import { CounterMap } from "../../base/counter-map.ts";
import { Fault } from "../../base/fault.ts";
import type { LinkedQueue, QueueNode } from "../../base/linked-queue.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { BreakerCall } from "./breaker.ts";
import { createPatientCalls, type Watcher } from "./patient-calls.ts";
import type { Replica } from "./replica.ts";
import {
	areAllTaken,
	chooseReplica,
	isAnyUsable,
	lastAnswerAtMs,
	noneUsable,
	placesOf,
	RETRY_AFTER_S_MIN,
} from "./replica-choice.ts";
import { type AcquireOptions, type PatientCall, Ticket, type TicketOwner } from "./ticket.ts";
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
	 * `service_unavailable` if no replica may be used, nor any be asked as a last resort, `overloaded` if too many wait or the wait was too long, and with
	 * the signal's reason when the client leaves.
	 */
	acquire(options: AcquireOptions): Ticket | Promise<Ticket>;
	/** Whether it can go anywhere outside `exclude`: to a replica that may take calls of its account, full or not, or to a last resort. */
	hasNext(wanted: Asking): boolean;
	/** Monotonic time at which some replica last answered a request; undefined if none ever did. */
	answeredAtMs(): number | undefined;
	replicas(): readonly Replica[];
	/** Drained ones whose calls are still under way: if their address comes back, so do they, or it would have twice its places. */
	leaving(): readonly Replica[];
	/** Swaps the replicas; the ones left out are drained. */
	replace(replicas: readonly Replica[]): void;
	/** Looks again whether waiting requests can go on: a replica's state changed. */
	wake(): void;
	waiting(): number;
	/** Whether somebody waits because all places are taken. */
	contended(): boolean;
	/**
	 * Resolves with how many lines of batches others leave places for beyond the `taken` ones, once it is one at least;
	 * rejects when `signal` aborts, or with Fault service_unavailable when the pool closes. `wake` has it look again.
	 */
	room(taken: () => number, signal: AbortSignal): Promise<number>;
	/** Sends everybody away who waits: by `why`, or since no replica is there. */
	close(why?: Error): void;
}

type Asking = Pick<AcquireOptions, "exclude" | "accountId" | "patient">;

/** How often it is looked whether who waits can go on, whatever happened. */
const LOOK_MS = 1_000;

export function createPool(deps: { clock: Clock }, options: { limits: () => ServiceLimits }): Pool {
	const { clock } = deps;
	const { limits } = options;
	let replicas: readonly Replica[] = [];
	let leaving: readonly Replica[] = [];
	/** Places of each account that has any. */
	const held = new CounterMap();
	const lines = createWaitingLines((accountId) => held.of(accountId));
	const patient = createPatientCalls();
	const owner: TicketOwner = { giveBack, wake };
	/** Where the search for the least busy begins, so that equals take turns. */
	let turn = 0;
	let looksAgain = false;

	const hasUsable = ({ exclude, accountId }: Asking) => isAnyUsable(replicas, exclude, accountId);
	const sendAway = (waiter: Waiter) => waiter.refuse(noneUsable(replicas, waiter.options.accountId));

	function acquire(wanted: AcquireOptions): Ticket | Promise<Ticket> {
		// What is left then is a place that nobody who waits can use.
		wake();
		const replica = wanted.patient === true ? choosePatient(wanted) : choose(wanted);
		if (replica !== undefined) return ticketOf(replica, wanted);
		if (!hasUsable(wanted)) {
			const last = lastResort(wanted);
			if (last === undefined) throw noneUsable(replicas, wanted.accountId);
			return ticketOf(last, wanted);
		}
		if (wanted.patient === true) return wait(wanted);
		if (lines.size() >= limits().queueLengthMax) {
			const last = lines.displaced(wanted.accountId);
			if (last === undefined) throw overloaded();
			last.refuse(overloaded());
		}
		return wait(wanted);
	}

	/** What is doubted is asked rather than nobody. Lines of batches wait until it is well. */
	function lastResort({ exclude, patient: isLine = false }: Asking): Replica | undefined {
		return isLine ? undefined : replicas.find((replica) => !exclude.has(replica) && replica.isLastResort());
	}

	/** Behind everybody who waits. */
	function choosePatient({ exclude, accountId }: AcquireOptions): Replica | undefined {
		return lines.size() > 0 ? undefined : patient.choose(replicas, exclude, accountId);
	}

	/** Whether the account holds all the places that it may, of those that there are now. */
	function hasItsShare(accountId: string): boolean {
		const { accountShare } = limits();
		const places = held.of(accountId);
		if (places === 0 || accountShare === 1) return false;
		return places >= Math.max(1, Math.floor(placesOf(replicas) * accountShare));
	}

	function choose(wanted: AcquireOptions): Replica | undefined {
		if (hasItsShare(wanted.accountId)) return undefined;
		turn = (turn + 1) % Math.max(replicas.length, 1);
		return chooseReplica(replicas, turn, wanted);
	}

	/** Places of lines of batches are not its account's: they are nobody's whom another waits for. */
	function count(accountId: string, change: 1 | -1): void {
		held.add(accountId, change);
		lines.goBehind(accountId);
	}

	function ticketOf(replica: Replica, { accountId, patient: isLine = false, onAsked }: AcquireOptions): Ticket {
		const call = replica.begin(accountId);
		const line = isLine ? patient.begin(replica, onAsked) : undefined;
		if (line === undefined) count(accountId, 1);
		return new Ticket(owner, replica, call, line);
	}

	function giveBack({ accountId }: BreakerCall, line: PatientCall | undefined): void {
		if (line === undefined) count(accountId, -1);
		else line.end();
	}

	/** Places come with time, too: a breaker cools down, a server that came back takes more. Nobody tells of those. */
	function lookAgain(): void {
		if (looksAgain) return;
		looksAgain = true;
		clock.after(LOOK_MS, () => {
			looksAgain = false;
			wake();
			if (lines.size() + patient.waiting.size + patient.watching.size > 0) lookAgain();
		});
	}

	function wait(wanted: AcquireOptions): Promise<Ticket> {
		lookAgain();
		if (wanted.patient === true) return ticketLater(wanted, patient.waiting);
		const waited = ticketLater(wanted, lines, (refuse) =>
			clock.after(limits().queueWaitMs, () => refuse(overloaded())),
		);
		if (!wanted.signal.aborted && !hasItsShare(wanted.accountId)) askForPlace(wanted);
		return waited;
	}

	/** A line of a batch that has a place which this request could have gives it up. */
	function askForPlace({ exclude, accountId }: AcquireOptions): void {
		patient.askOne(replicas.filter((replica) => !exclude.has(replica) && replica.usable(accountId)));
	}

	/** Gives out the places that there are, one at a time, since each changes whose turn it is. */
	function wake(): void {
		while (lines.size() > 0 && serveNext());
		if (patient.waiting.size > 0) servePatient();
		if (patient.watching.size > 0) for (const watcher of patient.watching) watcher.look();
	}

	/** What is left goes to lines of batches: of an account that is kept away from where there is room the others are passed over. */
	function servePatient(): void {
		const passed = new Set<string>();
		for (const waiter of patient.waiting) {
			const { options } = waiter;
			const isFirst = options.exclude.size === 0;
			if (isFirst && passed.has(options.accountId)) continue;
			const replica = choosePatient(options);
			if (replica !== undefined) waiter.serve(ticketOf(replica, options));
			else if (!hasUsable(options)) sendAway(waiter);
			else if (isFirst && !patient.hasRoom(replicas)) return;
			else if (isFirst) passed.add(options.accountId);
		}
	}

	/**
	 * Whether anybody was served. Its cost grows with the accounts that wait, at most `queue_length`, and only when there
	 * is a place to give or a server fails.
	 */
	function serveNext(): boolean {
		if (areAllTaken(replicas)) return false;
		for (const line of lines.inTurn())
			for (const waiter of line) {
				const { options } = waiter;
				const replica = choose(options);
				if (replica !== undefined) {
					waiter.serve(ticketOf(replica, options));
					return true;
				}
				if (!hasUsable(options)) sendAway(waiter);
				// Its account has no place to hope for: the rest of its line need not be asked.
				else if (options.exclude.size === 0) break;
			}
		return false;
	}

	return {
		acquire,
		hasNext: (wanted) => hasUsable(wanted) || lastResort(wanted) !== undefined,
		answeredAtMs: () => lastAnswerAtMs(replicas),
		replicas: () => replicas,
		leaving: () => leaving,
		replace(next) {
			for (const replica of replicas) if (!next.includes(replica)) replica.drain();
			for (const replica of leaving) if (next.includes(replica)) replica.takeBack();
			leaving = [...leaving, ...replicas].filter((replica) => !next.includes(replica) && replica.inFlight() > 0);
			replicas = next;
			wake();
		},
		wake,
		waiting: lines.size,
		room(taken, signal) {
			lookAgain();
			return whenRoom(patient.watching, signal, () => (lines.size() > 0 ? 0 : patient.places(replicas) - taken()));
		},
		contended: () => lines.size() > 0 && areAllTaken(replicas),
		close(why = noneUsable([])) {
			replicas = [];
			for (const line of lines.inTurn()) for (const waiter of line) waiter.refuse(why);
			for (const waiter of patient.waiting) waiter.refuse(why);
			for (const watcher of patient.watching) watcher.refuse(why);
		},
	};
}

/** Waits among the others until it is served, sent away (by `end` too, which gives what stops it), or its client leaves. */
function ticketLater(
	wanted: AcquireOptions,
	others: { add(waiter: Waiter): QueueNode<Waiter>; delete(node: QueueNode<Waiter>): void },
	end: (refuse: (fault: Error) => void) => () => void = () => () => {},
): Promise<Ticket> {
	return new Promise((resolve, reject) => {
		let node: QueueNode<Waiter> | undefined;
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
		const cancel = end(waiter.refuse);
		const onAbort = () => waiter.refuse(wanted.signal.reason);
		const leave = () => {
			if (node !== undefined) others.delete(node);
			cancel();
			wanted.signal.removeEventListener("abort", onAbort);
		};
		if (wanted.signal.aborted) return onAbort();
		wanted.signal.addEventListener("abort", onAbort, { once: true });
		node = others.add(waiter);
	});
}

/** Resolves with the room once there is some; looks whenever those who watch are told to. */
function whenRoom(watching: LinkedQueue<Watcher>, signal: AbortSignal, roomNow: () => number): Promise<number> {
	return new Promise((resolve, reject) => {
		const watcher: Watcher = {
			look() {
				const room = roomNow();
				if (room > 0) leave(() => resolve(room));
			},
			refuse: (fault) => leave(() => reject(fault)),
		};
		const leave = (then: () => void) => {
			watching.delete(node);
			signal.removeEventListener("abort", onAbort);
			then();
		};
		const onAbort = () => leave(() => reject(signal.reason));
		if (signal.aborted) return reject(signal.reason);
		signal.addEventListener("abort", onAbort, { once: true });
		const node = watching.add(watcher);
		watcher.look();
	});
}

function overloaded(): Fault {
	return new Fault("overloaded", "All servers for this model are busy. Try again shortly.", {
		retryAfterS: RETRY_AFTER_S_MIN,
	});
}
