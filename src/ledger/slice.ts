import { addUsd, type NanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";

export type Slice = ReturnType<typeof createSlice>;

/** Milliseconds for which a slice keeps free credit only for waiting requests after it was recalled. */
export const CONTESTED_MS = 5_000;

export interface CreditWaiter {
	/** Number of the waiting request, counted from 1 in each slice. */
	readonly number: number;
	readonly need: NanoUsd;
	resolve(shortage: BudgetShortage | null): void;
	reject(error: unknown): void;
}

/** Proof that the credit on this instance, in Postgres and idle on other instances is less than a request's need. */
export interface BudgetShortage {
	readonly budget: string;
	readonly needNanoUsd: NanoUsd;
	/** Largest amount that the request could have reserved. */
	readonly availableNanoUsd: NanoUsd;
	/** True if nothing was lacking: by the database's clock, the cap is already in another period. */
	readonly untimely: boolean;
}

/**
 * This instance's part of a budget. Invariant: free + held + unacknowledged + returning equals what is left of the
 * lease in Postgres (granted − returned − settled), except while statements are in flight.
 */
export function createSlice(budget: string, nowMs: number, contestedUntilMs: number) {
	return {
		budget,
		free: ZERO_USD,
		/** Part of `free` that is promised to waiting requests and therefore not returned. */
		promised: ZERO_USD,
		held: ZERO_USD,
		/** Credit that was charged, but whose settlement Postgres has not acknowledged. */
		unacknowledged: ZERO_USD,
		/** Credit removed from `free` whose return Postgres has not acknowledged. */
		returning: ZERO_USD,
		/** Returns in flight, whose amounts are in `returning`; they never reject. */
		returns: new Set<Promise<boolean>>(),
		returnsEver: 0,
		/** The grant in flight; it never rejects. */
		asking: undefined as Promise<void> | undefined,
		/** True if the limit was lowered while a grant was in flight. The whole grant is then returned. */
		askedTooEarly: false,
		/** Value of `Slices.lowerings` when this budget's limit was last lowered; 0: never. */
		lowering: 0,
		/** True if a grant got no answer: the lease in Postgres may contain more than this slice counts. */
		mayHoldMore: false,
		/** Charges in nano-dollars per second, smoothed. */
		burnPerSecond: 0,
		burntSinceTick: 0,
		/** Largest amount that was held at once; decays with time. */
		heldPeak: 0,
		lastUsedMs: nowMs,
		/** Until then, other instances need credit of this budget, so credit that becomes free is returned at once. */
		contestedUntilMs,
		/** Until then, no credit is requested in advance, because Postgres had none left. */
		dryUntilMs: Number.NEGATIVE_INFINITY,
		recalledMs: Number.NEGATIVE_INFINITY,
		waiters: [] as CreditWaiter[],
		waitersEver: 0,
		pumping: false,
	};
}

/** True while other instances need credit of this budget. Free credit is then kept only for waiting requests. */
export const isContested = (slice: Slice, nowMs: number): boolean => slice.contestedUntilMs > nowMs;

export function holdCredit(slice: Slice, amount: NanoUsd): void {
	slice.free = subUsd(slice.free, amount);
	slice.held = addUsd(slice.held, amount);
}
