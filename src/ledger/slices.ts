import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Fault, type FaultDetail } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { addUsd, type NanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";
import { createReturns } from "./returns.ts";
import { CONTESTED_MS, createSlice, isContested, type Shortage, type Slice, type Waiter } from "./slice.ts";
import { createSlicePump } from "./slice-pump.ts";
import { type LedgerStore, NotLive } from "./store.ts";

export type { Shortage, Slice } from "./slice.ts";

export interface SlicesOptions {
	/** Slices are sized for this long: an outage of the database must not starve a busy account. */
	horizonMs: number;
	idleReturnMs?: number | undefined;
}

export interface SliceTotals {
	readonly free: number;
	readonly held: number;
	readonly unacknowledged: number;
}

export type Slices = ReturnType<typeof createSlices>;

/** Free credit that a request was promised and may be about to reserve. */
interface Promised {
	readonly slice: Slice;
	readonly need: NanoUsd;
	/** How many lowerings of limits there had been. */
	readonly lowering: number;
}

const WAITERS_MAX = 10_000;
const IDLE_RETURN_MS = 60_000;
/** How long a request waits for a grant before it receives 503. */
const DRAW_DEADLINE_MS = 5_000;
const TICK_MS = 1_000;
const BURN_SMOOTHING = 0.3;
const PEAK_FADING = 0.95;
/** Slices per turn of the tick. */
const SLICES_A_TURN = 5_000;
const NO_TOTALS: SliceTotals = { free: 0, held: 0, unacknowledged: 0 };

export function createSlices(
	deps: { store: LedgerStore; clock: Clock; log: Log; newUuid: () => string },
	options: SlicesOptions,
) {
	const { clock, newUuid } = deps;
	const returns = createReturns(deps);
	const slices = new Map<string, Slice>();
	const pump = createSlicePump(
		{
			...deps,
			giveBack: (slice) => giveBack(slice),
			onServed: (slice) => giveBackIfIdle(slice, clock.monotonicMs()),
			onUnknown(budget) {
				const slice = slices.get(budget);
				if (slice) slice.mayHoldMore = true;
			},
		},
		options,
	);
	const { idleReturnMs = IDLE_RETURN_MS } = options;
	let totals: SliceTotals = NO_TOTALS;
	let lowerings = 0;
	/** Until when new slices are contested: for good once all is returned. Draws under way may still create slices. */
	let newOnesUntilMs = Number.NEGATIVE_INFINITY;
	let stopped = false;
	let cancelTick = clock.after(TICK_MS, tick);

	function obtain(budget: string): Slice {
		const slice = slices.get(budget) ?? createSlice(budget, clock.monotonicMs(), newOnesUntilMs);
		slices.set(budget, slice);
		return slice;
	}

	function giveBackIfIdle(slice: Slice, nowMs: number): void {
		if (isContested(slice, nowMs) && slice.waiters.length === 0 && !slice.pumping) giveBack(slice);
	}

	/** Returns free credit that is not promised. `recall`: the recall that this answers. */
	function giveBack(slice: Slice, recall: number | null = null): void {
		if (slice.free > slice.promised) sendBack(slice, subUsd(slice.free, slice.promised), recall);
	}

	/** Takes it from memory first: from then on it cannot be spent, whatever becomes of the statement. */
	function sendBack(slice: Slice, amount: NanoUsd, recall: number | null): void {
		if (stopped) return;
		slice.free = subUsd(slice.free, amount);
		slice.returning = addUsd(slice.returning, amount);
		const sent = returns.send({ op: newUuid(), budget: slice.budget, amount, recall }).then((arrived) => {
			slice.returns.delete(sent);
			if (arrived) slice.returning = subUsd(slice.returning, amount);
			return arrived;
		});
		slice.returns.add(sent);
		slice.returnsEver += 1;
	}

	/** Maintains every slice once, a part of them at a time so that requests run in between. */
	function tick(): void {
		if (stopped) return;
		const sums = { free: 0, held: 0, unacknowledged: 0 };
		const rest = slices.values();
		const part = (): void => {
			if (stopped) return;
			const nowMs = clock.monotonicMs();
			for (let looked = 0; looked < SLICES_A_TURN; looked++) {
				const next = rest.next();
				if (next.done) {
					totals = sums;
					cancelTick = clock.after(TICK_MS, tick);
					return;
				}
				lookAfter(next.value, nowMs);
				if (!next.value.budget.startsWith("acc_")) continue;
				sums.free += next.value.free;
				sums.held += next.value.held;
				sums.unacknowledged += next.value.unacknowledged;
			}
			cancelTick = clock.after(0, part);
		};
		part();
	}

	function lookAfter(slice: Slice, nowMs: number): void {
		const perSecond = (slice.burntSinceTick * 1000) / TICK_MS;
		// Rises at once: an outage can begin in the first seconds of an account's traffic.
		slice.burnPerSecond += (perSecond > slice.burnPerSecond ? 1 : BURN_SMOOTHING) * (perSecond - slice.burnPerSecond);
		slice.burntSinceTick = 0;
		slice.heldPeak = Math.max(slice.held, slice.heldPeak * PEAK_FADING);
		if (slice.held > 0 || slice.waiters.length > 0 || slice.pumping) return;
		if (nowMs - slice.lastUsedMs < idleReturnMs) return;
		if (slice.free > 0) giveBack(slice);
		// A slice that may hold more is kept: without it a recall would be answered as if all were returned.
		else if (slice.unacknowledged === 0 && slice.returning === 0 && !slice.mayHoldMore) slices.delete(slice.budget);
	}

	/** Credit requested while other instances need it too would lie idle here. */
	function contest(slice: Slice): void {
		slice.contestedUntilMs = Math.max(slice.contestedUntilMs, clock.monotonicMs() + CONTESTED_MS);
	}

	/** Resolves when credit that was free or arriving at the call is in Postgres. True if that carried the answer. */
	async function surrender(slice: Slice, ticket: number): Promise<boolean> {
		contest(slice);
		const alone =
			slice.returns.size === 0 && slice.asking === undefined && slice.free > slice.promised && !slice.mayHoldMore;
		// Own waiters request again with the others: a slice that covers none of them helps no request.
		giveBack(slice, alone ? ticket : null);
		if (slice.asking) {
			await slice.asking;
			giveBack(slice);
		}
		await Promise.all(slice.returns);
		return alone;
	}

	/** The promised request had its turn to reserve. A lowering of the limit has taken it back already. */
	function takeBack({ slice, need, lowering }: Promised): void {
		if (lowering < slice.lowering) return;
		slice.promised = subUsd(slice.promised, need);
		giveBackIfIdle(slice, clock.monotonicMs());
	}

	/** Null: added to `told`; the caller takes it back. */
	async function drawOne(slice: Slice, need: NanoUsd, told: Promised[]): Promise<Shortage | null> {
		const tell = (): void => {
			slice.promised = addUsd(slice.promised, need);
			told.push({ slice, need, lowering: lowerings });
		};
		slice.lastUsedMs = clock.monotonicMs();
		if (slice.free >= need) {
			tell();
			return null;
		}
		if (stopped) throw unavailable({ private: "the ledger is stopping" });
		if (slice.waiters.length >= WAITERS_MAX) {
			throw new Fault("overloaded", "Too many requests wait for credit of this account.", { retryAfterS: 1 });
		}
		return new Promise((resolve, reject) => {
			const cancel = clock.after(DRAW_DEADLINE_MS, () => {
				slice.waiters = slice.waiters.filter((other) => other !== waiter);
				reject(unavailable({ private: "no grant in time" }));
			});
			slice.waitersEver += 1;
			const waiter: Waiter = {
				number: slice.waitersEver,
				need,
				resolve(shortage) {
					cancel();
					if (shortage === null) tell();
					resolve(shortage);
				},
				reject(cause) {
					cancel();
					reject(unavailable({ cause }));
				},
			};
			slice.waiters.push(waiter);
			if (!slice.pumping) void pump.serve(slice);
		});
	}

	return {
		get: (budget: string) => slices.get(budget),
		/** For reconciliation and tests. */
		all: () => slices.values(),
		/** Sums over slices of accounts, as of the last tick. */
		totals: () => totals,
		/**
		 * Waits until `need` was free in each budget, in order (inner lists concurrently), or returns the one that lacks
		 * it. Credit stays here until the caller's turn to reserve. A Fault if the database does not answer in time.
		 */
		async draw(budgets: readonly (string | readonly string[])[], need: NanoUsd) {
			assert(need >= 0, "a need is not negative");
			const told: Promised[] = [];
			const drawAll = async (beside: readonly string[]): Promise<Shortage | null> => {
				const drawn = await Promise.allSettled(beside.map((budget) => drawOne(obtain(budget), need, told)));
				const lacking = drawn.find((one) => one.status === "rejected" || one.value !== null);
				if (lacking?.status === "rejected") throw lacking.reason;
				return lacking?.value ?? null;
			};
			try {
				for (const step of budgets) {
					const shortage = await (typeof step === "string" ? drawOne(obtain(step), need, told) : drawAll(step));
					if (shortage) return shortage;
				}
				return null;
			} finally {
				clock.after(0, () => told.forEach(takeBack));
			}
		},
		/** After a reservation: requests more before the slice runs out. */
		topUp(slice: Slice, nowMs: number) {
			slice.lastUsedMs = nowMs;
			if (slice.held > slice.heldPeak) slice.heldPeak = slice.held;
			pump.askAhead(slice, nowMs);
		},
		settled(slice: Slice, nowMs: number) {
			slice.lastUsedMs = nowMs;
			giveBackIfIdle(slice, nowMs);
		},
		/** How many lowerings of limits this instance has applied, of any budget. */
		lowerings: () => lowerings,
		/**
		 * Releases the unused `rest` of a request admitted after `lowering` lowerings. If the limit was lowered since, the
		 * rest is returned to Postgres.
		 */
		leave(slice: Slice, rest: NanoUsd, lowering: number) {
			slice.held = subUsd(slice.held, rest);
			slice.free = addUsd(slice.free, rest);
			if (lowering < slice.lowering && rest > 0) sendBack(slice, rest, null);
		},
		/**
		 * Answers recall `ticket`: returns all credit free or arriving here, now and for some seconds. Resolves when
		 * Postgres has the credit and the answer; never rejects.
		 */
		async answer(budget: string, ticket: number) {
			const slice = slices.get(budget);
			if (slice && (await surrender(slice, ticket))) return;
			if (slice?.mayHoldMore) return;
			// Only after the returns: the answer says that they arrived.
			await returns.send({ op: newUuid(), budget, amount: ZERO_USD, recall: ticket });
		},
		/**
		 * The limit changed: a refused request may be possible now. If it was lowered, free, promised and arriving credit
		 * is not usable any more on return, nor is the rest of running requests.
		 */
		limitChanged(budget: string, lowered: boolean) {
			const slice = slices.get(budget);
			if (!slice) return;
			slice.dryUntilMs = Number.NEGATIVE_INFINITY;
			if (!lowered) return;
			contest(slice);
			lowerings += 1;
			slice.lowering = lowerings;
			slice.askedTooEarly = slice.asking !== undefined;
			slice.promised = ZERO_USD;
			giveBack(slice);
		},
		/** Admits nothing more: returns free credit now and later. True once the first part arrived, false if given up. */
		async handBack() {
			newOnesUntilMs = Number.POSITIVE_INFINITY;
			const arrived = [...slices.values()].map(async (slice) => {
				slice.contestedUntilMs = Number.POSITIVE_INFINITY;
				giveBack(slice);
				await slice.asking?.then(() => giveBack(slice));
				return (await Promise.all(slice.returns)).every(Boolean);
			});
			return (await Promise.all(arrived)).every(Boolean) && !stopped;
		},
		stop() {
			stopped = true;
			pump.stop();
			returns.stop();
			cancelTick();
			for (const slice of slices.values()) {
				for (const waiter of slice.waiters.splice(0)) waiter.reject(new NotLive("the ledger is stopping"));
			}
		},
	};
}

function unavailable(detail: FaultDetail): Fault {
	return new Fault("service_unavailable", "Credit cannot be reserved right now.", { retryAfterS: 1, ...detail });
}
