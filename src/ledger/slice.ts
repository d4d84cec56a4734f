import { addUsd, type NanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";

export type Slice = ReturnType<typeof createSlice>;

/** After a recall, free credit is kept only for requests that need it now, for this long. */
export const CONTESTED_MS = 5_000;

export interface Waiter {
	/** Counts up from 1 in each slice. */
	readonly number: number;
	readonly need: NanoUsd;
	resolve(shortage: Shortage | null): void;
	reject(error: unknown): void;
}

/** Proof that neither this instance, Postgres, nor idle credit of other instances covers the need. */
export interface Shortage {
	readonly budget: string;
	readonly needNanoUsd: NanoUsd;
	/** The most that could be reserved when the need was refused. */
	readonly availableNanoUsd: NanoUsd;
	/** Not a proof: by the database's clock this is not the cap's period now. The cap changed, or a clock is off. */
	readonly untimely: boolean;
}

/**
 * This instance's slice of one budget. Invariant: free + held + unacknowledged + returning is the rest of the lease in
 * Postgres (granted − returned − settled), apart from statements under way.
 */
export function createSlice(budget: string, nowMs: number, contestedUntilMs: number) {
	return {
		budget,
		free: ZERO_USD,
		/** The part of `free` that waiting requests may be about to reserve; it is not returned before. */
		promised: ZERO_USD,
		held: ZERO_USD,
		/** Charged, but not yet acknowledged by Postgres. */
		unacknowledged: ZERO_USD,
		/** Taken from `free` and on its way back. */
		returning: ZERO_USD,
		/** The statements that carry `returning`; they never reject. */
		returns: new Set<Promise<boolean>>(),
		returnsEver: 0,
		/** The grant under way; it never rejects. */
		asking: undefined as Promise<void> | undefined,
		/** The limit was lowered during the request for a grant: the grant is returned whole. */
		askedTooEarly: false,
		/** The number of the newest lowering of its limit that this instance applied; 0: none. */
		lowering: 0,
		/** A grant was given up with unknown outcome: the lease may hold more than is known here. */
		mayHoldMore: false,
		/** Charged per second, smoothed. */
		burnPerSecond: 0,
		burntSinceTick: 0,
		/** The most that was held at once, fading. */
		heldPeak: 0,
		lastUsedMs: nowMs,
		/** Other instances need this budget: credit that becomes free is returned at once. */
		contestedUntilMs,
		/** Postgres had no credit: no requests in advance until then. */
		dryUntilMs: Number.NEGATIVE_INFINITY,
		recalledMs: Number.NEGATIVE_INFINITY,
		waiters: [] as Waiter[],
		/** The number of the newest waiter. */
		waitersEver: 0,
		pumping: false,
	};
}

/** Other instances need this budget: credit is kept only for requests that need it now. */
export function isContested(slice: Slice, nowMs: number): boolean {
	return slice.contestedUntilMs > nowMs;
}

/** From free to held. */
export function take(slice: Slice, amount: NanoUsd): void {
	slice.free = subUsd(slice.free, amount);
	slice.held = addUsd(slice.held, amount);
}
