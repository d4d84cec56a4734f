import type { Clock } from "../../base/clock.ts";
import { CounterMap } from "../../base/counter-map.ts";
import { createFairLines } from "../../base/fair-lines.ts";
import { Fault } from "../../base/fault.ts";
import type { LinkedQueue, QueueNode } from "../../base/linked-queue.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { BreakerCall } from "./breaker.ts";
import { createFailedRequests } from "./failed-requests.ts";
import { createPatientCalls, type PlaceWatcher } from "./patient-calls.ts";
import type { Replica } from "./replica.ts";
import {
	areAllPlacesTaken,
	countFreePlaces,
	countPlaces,
	createReplicaChoice,
	hasUsableReplica,
	lastAnswerAtMs,
	noUsableReplicaFault,
	RETRY_AFTER_S_MIN,
} from "./replica-choice.ts";
import { type AcquireOptions, type PlaceWaiter, Ticket, type TicketOwner } from "./ticket.ts";

export type Pool = ReturnType<typeof createPool>;

type Asking = Pick<AcquireOptions, "exclude" | "accountId" | "patient">;

/** Share of the places for accounts without a place, so that long requests of several accounts cannot take all. */
const RESERVE = 1 / 16;

/** Interval at which waiting requests are checked even without an event. */
const LOOK_MS = 1_000;

/**
 * Replicas of a model, and the requests that wait for a place. Serves the account with the fewest places first; an
 * account gets at most its `account_share`, and the last sixteenth is for accounts without a place. If the queue is
 * full, the account with the most waiting requests loses its last one to an account with fewer.
 */
export function createPool(deps: { clock: Clock }, options: { limits: () => ServiceLimits }) {
	const { clock } = deps;
	const { limits } = options;
	let replicas: readonly Replica[] = [];
	let leaving: readonly Replica[] = [];
	const held = new CounterMap();
	const lines = createFairLines<PlaceWaiter>(
		({ options }) => options.accountId,
		(accountId) => held.of(accountId),
	);
	const patient = createPatientCalls();
	const owner: TicketOwner = { giveBack, wake };
	const choice = createReplicaChoice(clock);
	/** Index at which the search for the least busy replica starts, so that equally busy replicas take turns. */
	let turn = 0;
	let looksAgain = false;

	const hasUsable = ({ exclude, accountId }: Asking) => hasUsableReplica(replicas, exclude, accountId);
	const sendAway = (waiter: PlaceWaiter) => waiter.refuse(noUsableReplicaFault(replicas, waiter.options.accountId));

	/**
	 * Returns a free place, or a promise for one. Fault `service_unavailable` if no replica is usable; `overloaded` if
	 * too many requests wait, or this request waited too long; the signal's reason if the client disconnects.
	 */
	function acquire(wanted: AcquireOptions): Ticket | Promise<Ticket> {
		// Serves waiting requests first. A place that is still free afterwards suits none of them.
		wake();
		const replica = wanted.patient === true ? choosePatient(wanted) : choose(wanted);
		if (replica !== undefined) return ticketOf(replica, wanted);
		if (!hasUsable(wanted)) {
			const last = lastResort(wanted);
			if (last === undefined) throw noUsableReplicaFault(replicas, wanted.accountId);
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

	/** A replica that failed recently is better than a refusal. Batch lines wait until it is healthy instead. */
	function lastResort({ exclude, patient: isLine = false }: Asking): Replica | undefined {
		return isLine ? undefined : replicas.find((replica) => !exclude.has(replica) && replica.isLastResort());
	}

	/** A replica for a batch line, only if no other request waits. */
	function choosePatient({ exclude, accountId }: AcquireOptions): Replica | undefined {
		return lines.size() > 0 ? undefined : patient.choose(replicas, exclude, accountId);
	}

	/** True if only the places reserved for accounts without a place are free. */
	function isReserveLeft(): boolean {
		const places = countPlaces(replicas);
		const beyond = countFreePlaces(replicas) - Math.floor(places * RESERVE);
		// Places of batch lines count as free, because batch lines yield them.
		return limits().accountShare < 1 && places > 0 && beyond <= 0 && beyond + patient.running() <= 0;
	}

	/** True if the account has its full share of all places. */
	function hasItsShare(accountId: string): boolean {
		const { accountShare } = limits();
		const places = held.of(accountId);
		if (places === 0 || accountShare === 1) return false;
		return isReserveLeft() || places >= Math.max(1, Math.floor(countPlaces(replicas) * accountShare));
	}

	function choose(wanted: AcquireOptions): Replica | undefined {
		if (hasItsShare(wanted.accountId)) return undefined;
		turn = (turn + 1) % Math.max(replicas.length, 1);
		return choice(replicas, turn, wanted);
	}

	/** Counts an account's places. Its batch lines do not count, because they yield to any waiting request. */
	function count(accountId: string, change: 1 | -1): void {
		held.add(accountId, change);
		lines.goBehind(accountId);
	}

	function ticketOf(replica: Replica, { accountId, routed, patient: isLine = false, onAsked }: AcquireOptions): Ticket {
		const call = replica.begin(accountId);
		const endLine = isLine ? patient.begin(replica, onAsked) : undefined;
		if (endLine === undefined) count(accountId, 1);
		return new Ticket(owner, replica, call, endLine, routed);
	}

	function giveBack({ accountId }: BreakerCall, endLine: (() => void) | undefined): void {
		if (endLine === undefined) count(accountId, -1);
		else endLine();
	}

	/** Sets a timer: a breaker that has cooled down frees places without an event. */
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

	/** Asks a batch line to yield its place, if this request could use it. */
	function askForPlace({ exclude, accountId }: AcquireOptions): void {
		patient.askOne(replicas.filter((replica) => !exclude.has(replica) && replica.usable(accountId)));
	}

	/** Assigns free places one at a time, because each changes which account is next. */
	function wake(): void {
		while (lines.size() > 0 && serveNext());
		if (patient.waiting.size > 0) servePatient();
		if (patient.watching.size > 0) for (const watcher of patient.watching) watcher.look();
	}

	/** Skips an account's further lines once one of them could not use any replica with room. */
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

	/** Serves one waiting request; false if none could be. Visits accounts only if a place is free or a server fails. */
	function serveNext(): boolean {
		const first = lines.first();
		if (first === undefined || areAllPlacesTaken(replicas)) return false;
		// The reserve is for accounts without a place, and the first account in the queue has the fewest.
		if (held.of(first.options.accountId) > 0 && isReserveLeft()) return false;
		for (const line of lines.inTurn())
			for (const waiter of line) {
				const { options } = waiter;
				const replica = choose(options);
				if (replica !== undefined) {
					waiter.serve(ticketOf(replica, options));
					return true;
				}
				if (!hasUsable(options)) sendAway(waiter);
				// No free place suits this account, so the rest of its queue is skipped.
				else if (options.exclude.size === 0) break;
			}
		return false;
	}

	return {
		acquire,
		/** True if a replica outside `exclude` may serve the account, even if it is full now, or is a last resort. */
		hasNext: (wanted: Asking): boolean => hasUsable(wanted) || lastResort(wanted) !== undefined,
		/** Monotonic time of the last answer of any replica; undefined without one. */
		answeredAtMs: (): number | undefined => lastAnswerAtMs(replicas),
		failedRequests: createFailedRequests(clock),
		replicas: (): readonly Replica[] => replicas,
		/** Removed replicas with running calls. If the same address is added again, the replica keeps these calls. */
		leaving: (): readonly Replica[] => leaving,
		/** Sets the replicas. Removed replicas finish their running calls. */
		replace(next: readonly Replica[]) {
			for (const replica of replicas) if (!next.includes(replica)) replica.drain();
			for (const replica of leaving) if (next.includes(replica)) replica.takeBack();
			leaving = [...leaving, ...replicas].filter((replica) => !next.includes(replica) && replica.inFlight() > 0);
			replicas = next;
			wake();
		},
		wake,
		waiting: lines.size,
		/**
		 * Resolves with the number of places for batch lines beyond `taken`, once it is positive. Rejects when `signal`
		 * aborts; Fault service_unavailable when the pool closes.
		 */
		room(taken: () => number, signal: AbortSignal): Promise<number> {
			lookAgain();
			return whenRoom(patient.watching, signal, () => (lines.size() > 0 ? 0 : patient.places(replicas) - taken()));
		},
		/** True if requests wait because all places are occupied. */
		contended: (): boolean => lines.size() > 0 && (areAllPlacesTaken(replicas) || isReserveLeft()),
		/** Refuses all waiting requests with `why`; by default because no replica is available. */
		close(why: Error = noUsableReplicaFault([])) {
			replicas = [];
			for (const line of lines.inTurn()) for (const waiter of line) waiter.refuse(why);
			for (const waiter of patient.waiting) waiter.refuse(why);
			for (const watcher of patient.watching) watcher.refuse(why);
		},
	};
}

/** Waits in the queue until the request is served, refused or aborted; `end` refuses it. */
function ticketLater(
	wanted: AcquireOptions,
	others: { add(waiter: PlaceWaiter): QueueNode<PlaceWaiter>; delete(node: QueueNode<PlaceWaiter>): void },
	end: (refuse: (fault: Error) => void) => () => void = () => () => {},
): Promise<Ticket> {
	return new Promise((resolve, reject) => {
		let node: QueueNode<PlaceWaiter> | undefined;
		const waiter: PlaceWaiter = {
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

/** Resolves with the number of places once there are any; checks whenever the pool wakes its watchers. */
function whenRoom(watching: LinkedQueue<PlaceWatcher>, signal: AbortSignal, roomNow: () => number): Promise<number> {
	return new Promise((resolve, reject) => {
		const watcher: PlaceWatcher = {
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
