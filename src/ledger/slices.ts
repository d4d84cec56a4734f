import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Fault, type FaultDetail } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { addUsd, type NanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";
import { createReturns } from "./returns.ts";
import { type BudgetShortage, CONTESTED_MS, type CreditWaiter, createSlice, isContested, type Slice } from "./slice.ts";
import { createSlicePump } from "./slice-pump.ts";
import { InstanceNotLive, type LedgerStore } from "./store.ts";

export type { BudgetShortage, Slice } from "./slice.ts";

export interface SliceTotals {
	readonly free: number;
	readonly held: number;
	readonly unacknowledged: number;
}

export type Slices = ReturnType<typeof createSlices>;

/** Free credit promised to a request, which reserves it in its next synchronous step. */
interface Promised {
	readonly slice: Slice;
	readonly need: NanoUsd;
	/** Value of `lowerings` when the credit was promised. */
	readonly lowering: number;
}

const WAITERS_MAX = 10_000;
const IDLE_RETURN_MS = 60_000;
/** Milliseconds for which a request waits for a grant before it gets a 503. */
const DRAW_DEADLINE_MS = 5_000;
const TICK_MS = 1_000;
const BURN_SMOOTHING = 0.3;
const PEAK_FADING = 0.95;
/** Slices that `tick` updates before it yields to the event loop. */
const SLICES_A_TURN = 5_000;
const NO_TOTALS: SliceTotals = { free: 0, held: 0, unacknowledged: 0 };

export function createSlices(
	deps: { store: LedgerStore; clock: Clock; log: Log; newUuid: () => string },
	options: {
		/** Milliseconds of spending that a slice should cover, so that a busy account continues through a database outage. */
		horizonMs: number;
		idleReturnMs?: number | undefined;
	},
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
	/** Until then, a new slice starts as contested. Infinite after admission ended: arriving credit is returned. */
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

	/** Returns free credit that is not promised to a request. `recall`: number of the recall that this answers. */
	function giveBack(slice: Slice, recall: number | null = null): void {
		if (slice.free > slice.promised) sendBack(slice, subUsd(slice.free, slice.promised), recall);
	}

	/** Removes the amount from memory first, so that it cannot be spent even if the statement's outcome is unknown. */
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

	/** Updates every slice once, in parts, so that requests run in between. */
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
		// The average rises at once and falls slowly: an outage may start in the first seconds of an account's traffic.
		slice.burnPerSecond += (perSecond > slice.burnPerSecond ? 1 : BURN_SMOOTHING) * (perSecond - slice.burnPerSecond);
		slice.burntSinceTick = 0;
		slice.heldPeak = Math.max(slice.held, slice.heldPeak * PEAK_FADING);
		if (slice.held > 0 || slice.waiters.length > 0 || slice.pumping) return;
		if (nowMs - slice.lastUsedMs < idleReturnMs) return;
		if (slice.free > 0) giveBack(slice);
		// A slice that may hold more than it counts stays, or a recall would be answered as if all were returned.
		else if (slice.unacknowledged === 0 && slice.returning === 0 && !slice.mayHoldMore) slices.delete(slice.budget);
	}

	/** Marks the slice as contested, so that it draws no credit in advance while other instances need it. */
	function contest(slice: Slice): void {
		slice.contestedUntilMs = Math.max(slice.contestedUntilMs, clock.monotonicMs() + CONTESTED_MS);
	}

	/** Returns free and arriving credit. Resolves when Postgres has it; true if that also answered recall `ticket`. */
	async function surrender(slice: Slice, ticket: number): Promise<boolean> {
		contest(slice);
		const alone =
			slice.returns.size === 0 && slice.asking === undefined && slice.free > slice.promised && !slice.mayHoldMore;
		// Free credit that serves no waiting request is returned too; these requests then compete with other instances.
		giveBack(slice, alone ? ticket : null);
		if (slice.asking) {
			await slice.asking;
			giveBack(slice);
		}
		await Promise.all(slice.returns);
		return alone;
	}

	/** Ends a promise once the request could reserve. A lowered limit has ended earlier promises already. */
	function takeBack({ slice, need, lowering }: Promised): void {
		if (lowering < slice.lowering) return;
		slice.promised = subUsd(slice.promised, need);
		giveBackIfIdle(slice, clock.monotonicMs());
	}

	/** Draws for one slice. Returns null and adds to `promises`, which the caller must `takeBack`, or the shortage. */
	async function drawOne(slice: Slice, need: NanoUsd, promises: Promised[]): Promise<BudgetShortage | null> {
		const promise = (): void => {
			slice.promised = addUsd(slice.promised, need);
			promises.push({ slice, need, lowering: lowerings });
		};
		slice.lastUsedMs = clock.monotonicMs();
		if (slice.free >= need) {
			promise();
			return null;
		}
		if (stopped) throw unavailable({ private: "the ledger is stopping" });
		if (slice.waiters.length >= WAITERS_MAX) {
			throw new Fault("overloaded", "Too many requests of this account are waiting for credit. Please try again.", {
				retryAfterS: 1,
			});
		}
		return new Promise((resolve, reject) => {
			const cancel = clock.after(DRAW_DEADLINE_MS, () => {
				slice.waiters = slice.waiters.filter((other) => other !== waiter);
				reject(unavailable({ private: "no grant in time" }));
			});
			slice.waitersEver += 1;
			const waiter: CreditWaiter = {
				number: slice.waitersEver,
				need,
				resolve(shortage) {
					cancel();
					if (shortage === null) promise();
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
		/** All slices of this instance, for the checks of the books and for tests. */
		all: () => slices.values(),
		/** Sums over the slices of accounts, computed by the last tick. */
		totals: () => totals,
		/**
		 * Waits until `need` is free in each budget: outer list in order, inner lists concurrently. Returns null, or the
		 * first budget with too little. The amount stays promised until the caller's next step. Fault if the database does
		 * not answer in time.
		 */
		async draw(budgets: readonly (string | readonly string[])[], need: NanoUsd) {
			assert(need >= 0, "a need is not negative");
			const promises: Promised[] = [];
			const drawAll = async (beside: readonly string[]): Promise<BudgetShortage | null> => {
				const drawn = await Promise.allSettled(beside.map((budget) => drawOne(obtain(budget), need, promises)));
				const lacking = drawn.find((one) => one.status === "rejected" || one.value !== null);
				if (lacking?.status === "rejected") throw lacking.reason;
				return lacking?.value ?? null;
			};
			try {
				for (const step of budgets) {
					const shortage = await (typeof step === "string" ? drawOne(obtain(step), need, promises) : drawAll(step));
					if (shortage) return shortage;
				}
				return null;
			} finally {
				clock.after(0, () => promises.forEach(takeBack));
			}
		},
		/** Draws credit in advance if the slice runs low; called after each reservation. */
		topUp(slice: Slice, nowMs: number) {
			slice.lastUsedMs = nowMs;
			if (slice.held > slice.heldPeak) slice.heldPeak = slice.held;
			pump.askAhead(slice, nowMs);
		},
		settled(slice: Slice, nowMs: number) {
			slice.lastUsedMs = nowMs;
			giveBackIfIdle(slice, nowMs);
		},
		/** How often limits of budgets were lowered on this instance. A request stores the number at its admission. */
		lowerings: () => lowerings,
		/**
		 * Releases the unused `rest` of a request; `lowering` is the value of `lowerings()` at its admission. If the
		 * budget's limit was lowered since, the rest goes back to Postgres.
		 */
		leave(slice: Slice, rest: NanoUsd, lowering: number) {
			slice.held = subUsd(slice.held, rest);
			slice.free = addUsd(slice.free, rest);
			if (lowering < slice.lowering && rest > 0) sendBack(slice, rest, null);
		},
		/**
		 * Answers recall `ticket`: returns all free and arriving credit, and for some seconds also credit that becomes
		 * free. Resolves when Postgres has the credit and the answer; never rejects.
		 */
		async answer(budget: string, ticket: number) {
			const slice = slices.get(budget);
			if (slice && (await surrender(slice, ticket))) return;
			if (slice?.mayHoldMore) return;
			// The answer is sent after the returns, because it states that they have arrived.
			await returns.send({ op: newUuid(), budget, amount: ZERO_USD, recall: ticket });
		},
		/**
		 * Applies a changed limit. After a raise, credit may be available again, so advance draws resume. After a lowering,
		 * free, promised and arriving credit is returned, and later the unspent rest of running requests.
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
		/** Returns free credit now and, as admission ends, later. True once the first part arrived; false if given up. */
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
				for (const waiter of slice.waiters.splice(0)) waiter.reject(new InstanceNotLive("the ledger is stopping"));
			}
		},
	};
}

function unavailable(detail: FaultDetail): Fault {
	return new Fault("service_unavailable", "Credit cannot be reserved right now. Please try again.", {
		retryAfterS: 1,
		...detail,
	});
}
