import { addUsd, type NanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";

/**
 * This instance's slice of one budget. Invariant: free + held + unacknowledged + returning is the rest of the lease in
 * Postgres (granted − returned − settled), apart from statements under way.
 */
export interface Slice {
	readonly budget: string;
	/** May be reserved now. */
	free: NanoUsd;
	/** The part of `free` that waiting requests may be about to reserve; it is not returned before. */
	promised: NanoUsd;
	/** Reserved by running requests. */
	held: NanoUsd;
	/** Charged, but not yet acknowledged by Postgres. */
	unacknowledged: NanoUsd;
	/** Taken from `free` and on its way back. */
	returning: NanoUsd;
	/** The statements that carry `returning`; they never reject. */
	readonly returns: Set<Promise<boolean>>;
	returnsEver: number;
	/** The grant under way; it never rejects. */
	asking: Promise<void> | undefined;
	/** The limit was lowered during the request for a grant: the grant is returned whole. */
	askedTooEarly: boolean;
	/** The number of the newest lowering of its limit that this instance applied; 0: none. */
	lowering: number;
	/** A grant was given up with unknown outcome: the lease may hold more than is known here. */
	mayHoldMore: boolean;
	/** Charged per second, smoothed. */
	burnPerSecond: number;
	burntSinceTick: number;
	/** The most that was held at once, fading. */
	heldPeak: number;
	lastUsedMs: number;
	/** Other instances need this budget: credit that becomes free is returned at once. */
	contestedUntilMs: number;
	/** Postgres had no credit: no requests in advance until then. */
	dryUntilMs: number;
	/** When this instance last recalled idle credit from others. */
	recalledMs: number;
	waiters: Waiter[];
	/** The number of the newest waiter. */
	waitersEver: number;
	pumping: boolean;
}

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

export function createSlice(budget: string, nowMs: number, contestedUntilMs: number): Slice {
	return {
		budget,
		free: ZERO_USD,
		promised: ZERO_USD,
		held: ZERO_USD,
		unacknowledged: ZERO_USD,
		returning: ZERO_USD,
		returns: new Set(),
		returnsEver: 0,
		asking: undefined,
		askedTooEarly: false,
		lowering: 0,
		mayHoldMore: false,
		burnPerSecond: 0,
		burntSinceTick: 0,
		heldPeak: 0,
		lastUsedMs: nowMs,
		contestedUntilMs,
		dryUntilMs: Number.NEGATIVE_INFINITY,
		recalledMs: Number.NEGATIVE_INFINITY,
		waiters: [],
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
