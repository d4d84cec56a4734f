import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";
import { CounterMap } from "./counter-map.ts";
import { createFairLines } from "./fair-lines.ts";
import { Fault } from "./fault.ts";
import { SlotPool } from "./slot-pool.ts";

/** Fraction of a pool that is reserved for owners with only one unit or less than `LEAST` of the pool. */
const RESERVE = 1 / 16;
const LEAST = 1 / 1_024;

/** A holder that the pool may end when it is full, to take room from the owner that holds most. */
export interface EvictableHolder {
	readonly owner: string;
	/** A number such as its speed, start or deadline. The holder with the lowest number is ended first. */
	pace(): number;
	/** Ends the holder. It must give its part back before this call returns. */
	giveUp(why: Fault): void;
}

export type FairPool = ReturnType<typeof createFairPool>;

/**
 * A shared resource that is divided fairly among owners: accounts, or networks of callers that are not signed in
 * (`addressNetwork`). **Use it for every resource that requests share**: one pool per resource, and a row in
 * SECURITY.md's table.
 * - `take` and `giveBack`, or `enter` for one slot, refuse at the limit: an owner alone holds at most `share`. As
 *   others hold more, its part shrinks in proportion to what is free. The reserve is for owners that hold nearly
 *   nothing, so k owners at full load leave room for another, up to RESERVE / LEAST owners.
 * - Holders of `enter` or `yields` can be ended: if an owner that holds less finds no room, the owner that holds most
 *   loses its slowest holder. Needed if holders may last long (uploads, open streams).
 * - `createFairQueue` lets callers wait instead of refusing them.
 */
export function createFairPool({
	size,
	share,
	allYield = false,
	own = ownShareFault,
	full = allIsTaken,
}: {
	/** Size of the pool, in slots or bytes. */
	size(): number;
	/** Largest fraction that an owner may hold while no other owner holds any; 1: all. */
	share(): number;
	/** True if every holder can be ended. Fractions then do not shrink and nothing is kept in reserve. */
	readonly allYield?: boolean;
	/** Refuses an owner that already holds its largest fraction. */
	own?(): Fault;
	/** Refuses an owner that holds little, because others have used up the pool. */
	full?(): Fault;
}) {
	const held = new CounterMap();
	const yielding = new SlotPool<EvictableHolder>();
	let all = 0;

	/** Most that an owner may hold while no other owner holds any. */
	const cap = () => Math.max(1, Math.floor(size() * share()));

	function fits(owner: string, amount: number): boolean {
		const most = size();
		const mine = held.of(owner) + amount;
		const free = most - all - amount;
		if (free < 0) return false;
		if (mine <= Math.max(1, most * LEAST)) return true;
		const ownMost = cap();
		if (mine > ownMost) return false;
		if (allYield) return true;
		const reserve = Math.min(Math.floor(most * RESERVE), most - ownMost);
		// The formula allows an owner that is alone exactly `ownMost`.
		return mine * (most - ownMost - reserve) <= ownMost * (free - reserve);
	}

	function refusal(owner: string, amount: number): Fault {
		return held.of(owner) + amount > cap() ? own() : full();
	}

	/** Slowest holder of the owner that holds most, if that is more than `mine`. Takes 0.3 ms with 4,096 holders. */
	function mostHeld(mine: number): EvictableHolder | undefined {
		let found: EvictableHolder | undefined;
		let most = mine;
		for (const one of yielding) {
			const its = held.of(one.owner);
			if (its > most || (its === most && found !== undefined && one.pace() < found.pace())) found = one;
			if (found === one) most = its;
		}
		return found;
	}

	function take(owner: string, amount = 1): void {
		while (!fits(owner, amount)) {
			const mine = held.of(owner) + amount;
			const before = all;
			if (mine <= cap()) mostHeld(mine)?.giveUp(displaced());
			if (all === before) throw refusal(owner, amount);
		}
		add(owner, amount);
	}

	function add(owner: string, amount: number): void {
		held.add(owner, amount);
		all += amount;
	}

	function giveBack(owner: string, amount = 1): void {
		assert(held.of(owner) >= amount, "an owner gives back what it took");
		add(owner, -amount);
	}

	return {
		/** True if the amount is within the owner's part and the pool's free room. */
		fits,
		/** Throws what `take` would throw. Takes nothing. */
		check(owner: string, amount = 1) {
			if (!fits(owner, amount)) throw refusal(owner, amount);
		},
		/** Takes an amount. Without room, throws `own` (default rate_limit_exceeded) or `full` (default overloaded). */
		take,
		/** Counts an amount that is already in use, even beyond the owner's part or the pool's size. */
		add,
		giveBack,
		/** Registers a holder that the pool may end. Returns its slot for `keeps`. */
		yields: (one: EvictableHolder): number => yielding.take(one),
		keeps: (slot: number, one: EvictableHolder): boolean => yielding.release(slot, one),
		/**
		 * Takes a slot for a holder, whose `giveUp` the pool may call to free the slot for others. Returns an idempotent
		 * function that frees the slot. Throws the fault `own` at the owner's share, `full` if all slots are taken.
		 */
		enter(owner: string, holder: Omit<EvictableHolder, "owner">, amount = 1): () => void {
			take(owner, amount);
			const one: EvictableHolder = {
				owner,
				pace: () => holder.pace(),
				giveUp(why) {
					leave();
					holder.giveUp(why);
				},
			};
			const slot = yielding.take(one);
			const leave = () => {
				if (yielding.release(slot, one)) giveBack(owner, amount);
			};
			return leave;
		},
		of: (owner: string): number => held.of(owner),
		all: (): number => all,
	};
}

export function ownShareFault(): Fault {
	return new Fault(
		"rate_limit_exceeded",
		"This account has too many requests of this kind in progress. Retry when one has ended.",
		{ retryAfterS: 1 },
	);
}

function allIsTaken(): Fault {
	return new Fault("overloaded", "The service has too many requests of this kind in progress. Retry shortly.", {
		retryAfterS: 2,
	});
}

function displaced(): Fault {
	return new Fault("overloaded", "The service ended this request, because others need its place. Retry shortly.", {
		retryAfterS: 2,
	});
}

export interface FairQueueOptions {
	readonly places: number;
	/** Maximum number of slots of one owner; default: all. */
	readonly ownMax?: number;
	readonly waitingMax: number;
	readonly waitMsMax: number;
	full?(): Fault;
}

/**
 * Slots for short work, such as queries. Callers wait for a slot; the owner with the fewest slots is served first. If
 * too many wait, the owner with most waiters loses its last one. Fault `full` (default overloaded).
 */
export function createFairQueue(
	{ clock }: { clock: Clock },
	{ places, ownMax = places, waitingMax, waitMsMax, full = allIsTaken }: FairQueueOptions,
) {
	interface Waiter {
		readonly owner: string;
		serve(): void;
		refuse(): void;
	}
	const held = new CounterMap();
	const lines = createFairLines<Waiter>(
		({ owner }) => owner,
		(owner) => held.of(owner),
	);
	let taken = 0;

	function placeOf(owner: string): () => void {
		taken += 1;
		held.add(owner, 1);
		lines.goBehind(owner);
		let isHeld = true;
		return () => {
			if (!isHeld) return;
			isHeld = false;
			taken -= 1;
			held.add(owner, -1);
			const next = lines.first();
			if (next !== undefined && held.of(next.owner) < ownMax) next.serve();
		};
	}

	function wait(owner: string): Promise<() => void> {
		if (lines.size() >= waitingMax) {
			const last = lines.displaced(owner);
			if (last === undefined) throw full();
			last.refuse();
		}
		return new Promise((resolve, reject) => {
			const leave = () => {
				lines.delete(node);
				cancel();
			};
			const waiter: Waiter = {
				owner,
				serve() {
					leave();
					resolve(placeOf(owner));
				},
				refuse() {
					leave();
					reject(full());
				},
			};
			const cancel = clock.after(waitMsMax, waiter.refuse);
			const node = lines.add(waiter);
		});
	}

	return {
		/** Resolves with an idempotent function that frees the slot. */
		async enter(owner: string): Promise<() => void> {
			return taken < places && held.of(owner) < ownMax ? placeOf(owner) : await wait(owner);
		},
		/** Runs `work` in a slot of this owner. */
		async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
			const leave = await this.enter(owner);
			try {
				return await work();
			} finally {
				leave();
			}
		},
		waiting: lines.size,
	};
}
