import { addUsd, type NanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";

export type Slice = ReturnType<typeof createSlice>;

/** Milliseconds after a recall in which a slice keeps free credit only for waiting requests. */
export const CONTESTED_MS = 5_000;

export interface Waiter {
	/** Number of the waiter, from 1 in each slice. */
	readonly number: number;
	readonly need: NanoUsd;
	resolve(shortage: Shortage | null): void;
	reject(error: unknown): void;
}

/** Proof that this instance, Postgres and other instances' idle credit together do not cover a need. */
export interface Shortage {
	readonly budget: string;
	readonly needNanoUsd: NanoUsd;
	/** Largest amount that could be reserved when the need was refused. */
	readonly availableNanoUsd: NanoUsd;
	/** True if this is no proof of a shortage: by the database's clock the cap is already in another period. */
	readonly untimely: boolean;
}

/**
 * This instance's part of a budget. Invariant: free + held + unacknowledged + returning equals the rest of the lease in
 * Postgres (granted − returned − settled), except while statements run.
 */
export function createSlice(budget: string, nowMs: number, contestedUntilMs: number) {
	return {
		budget,
		free: ZERO_USD,
		/** Part of `free` promised to waiting requests, which is not returned. */
		promised: ZERO_USD,
		held: ZERO_USD,
		/** Charged, but not yet acknowledged by Postgres. */
		unacknowledged: ZERO_USD,
		/** Removed from `free` and on its way to Postgres. */
		returning: ZERO_USD,
		/** Statements that carry the amounts in `returning`; they never reject. */
		returns: new Set<Promise<boolean>>(),
		returnsEver: 0,
		/** The running request for a grant; it never rejects. */
		asking: undefined as Promise<void> | undefined,
		/** True if the limit was lowered while a grant was requested. The whole grant is then returned. */
		askedTooEarly: false,
		/** Number of the newest limit lowering that this instance has applied to the budget; 0: none. */
		lowering: 0,
		/** True if a grant ended without an answer: the lease may hold more than this slice knows. */
		mayHoldMore: false,
		/** Charges per second, smoothed. */
		burnPerSecond: 0,
		burntSinceTick: 0,
		/** Largest amount held at once, decaying. */
		heldPeak: 0,
		lastUsedMs: nowMs,
		/** Until then other instances need this budget, so credit that becomes free is returned at once. */
		contestedUntilMs,
		/** Until then no credit is requested in advance, because Postgres had none left. */
		dryUntilMs: Number.NEGATIVE_INFINITY,
		recalledMs: Number.NEGATIVE_INFINITY,
		waiters: [] as Waiter[],
		waitersEver: 0,
		pumping: false,
	};
}

/** True while other instances need this budget. Free credit is then kept only for waiting requests. */
export function isContested(slice: Slice, nowMs: number): boolean {
	return slice.contestedUntilMs > nowMs;
}

/** Moves an amount from free to held. */
export function holdCredit(slice: Slice, amount: NanoUsd): void {
	slice.free = subUsd(slice.free, amount);
	slice.held = addUsd(slice.held, amount);
}
