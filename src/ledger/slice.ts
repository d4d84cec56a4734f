import type { NanoUsd } from "../money/nano-usd.ts";
import { addUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";

/**
 * This instance's slice of one budget. Invariant: free + held + unacknowledged + returning is what Postgres thinks is
 * left of the lease (granted − returned − settled), apart from statements under way.
 */
export interface Slice {
	readonly budget: string;
	/** May be reserved now. */
	free: NanoUsd;
	/** The part of `free` that requests were told of and may be about to reserve: it is not given back under their hands. */
	promised: NanoUsd;
	/** Reserved by running requests. */
	held: NanoUsd;
	/** Charged, but Postgres has not said that it knows. */
	unacknowledged: NanoUsd;
	/** Taken from `free` and on its way back. */
	returning: NanoUsd;
	/** The statements that carry `returning`; they never reject. */
	readonly returns: Set<Promise<boolean>>;
	/** How many there have been. */
	returnsEver: number;
	/** The grant under way; it never rejects. */
	asking: Promise<void> | undefined;
	/** The limit was lowered while it was under way: what it brings goes back whole. */
	askedTooEarly: boolean;
	/** The number of the newest lowering of its limit that this instance heard of; 0: of none. */
	lowering: number;
	/** A grant was given up whose fate nobody knows: what is left of the lease may be more than is known here. */
	mayHoldMore: boolean;
	/** Charged per second, smoothed. */
	burnPerSecond: number;
	burntSinceTick: number;
	/** The most that was held at once, fading. */
	heldPeak: number;
	lastUsedMs: number;
	/** Other instances ask for this budget: what becomes free goes back at once. */
	contestedUntilMs: number;
	/** Postgres had nothing to give: no asking ahead until then. */
	dryUntilMs: number;
	/** When this instance last asked the others for what lies idle there. */
	recalledMs: number;
	waiters: Waiter[];
	/** The number of the newest waiter there has been. */
	waitersEver: number;
	pumping: boolean;
}

/** What others asked for is kept for nobody but the requests that need it now, for so long. */
export const CONTESTED_MS = 5_000;

export interface Waiter {
	/** Counts up from 1 in each slice. */
	readonly number: number;
	readonly need: NanoUsd;
	resolve(shortage: Shortage | null): void;
	reject(error: unknown): void;
}

/** Neither this instance, nor Postgres, nor what lay idle at other instances covers the need, and that is proved. */
export interface Shortage {
	readonly budget: string;
	readonly needNanoUsd: NanoUsd;
	/** What could be reserved at most when the need was refused. */
	readonly availableNanoUsd: NanoUsd;
	/**
	 * Nothing is proved: by the database this is no period of a cap now. The cap has just been changed, or a clock is off.
	 */
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

/** Others lack this budget too: nothing is kept here that no request needs now. */
export function isContested(slice: Slice, nowMs: number): boolean {
	return slice.contestedUntilMs > nowMs;
}

/** From free to held. */
export function take(slice: Slice, amount: NanoUsd): void {
	slice.free = subUsd(slice.free, amount);
	slice.held = addUsd(slice.held, amount);
}
