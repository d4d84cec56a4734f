import type { NanoUsd } from "../money/nano-usd.ts";

/** One wish for a slice. The same `op` asked twice is granted once. */
export interface GrantRequest {
	readonly op: string;
	readonly budget: string;
	readonly want: NanoUsd;
	/** Less than this is of no use: then nothing is granted. */
	readonly min: NanoUsd;
	/**
	 * An earlier attempt went unanswered. Then a refusal is final for this `op` too: the earlier attempt, should it arrive
	 * later, must not grant what nobody waits for any more.
	 */
	readonly again: boolean;
}

export interface GrantReply {
	readonly op: string;
	readonly amount: NanoUsd;
	/** What is left for others; null if the budget has no limit. */
	readonly available: NanoUsd | null;
	/** Another live instance holds some of it. */
	readonly elsewhere: boolean;
	readonly live: number;
}

export interface ReturnRequest {
	readonly op: string;
	readonly budget: string;
	readonly amount: NanoUsd;
}

/**
 * The ledger's statements for one instance epoch. Each may be repeated with the same ids. A rejection means that the
 * outcome is unknown, except NotLive, which is final.
 */
export interface LedgerStore {
	grant(requests: readonly GrantRequest[]): Promise<readonly GrantReply[]>;
	giveBack(requests: readonly ReturnRequest[]): Promise<void>;
	/**
	 * JSON arrays of SettledEvent and AdmittedEvent. `late`: the leases were closed, nothing was recorded. Rejects with
	 * LeaseExceeded, for good, if the charges are more than the leases hold.
	 */
	flush(settledJson: string, openJson: string): Promise<"ok" | "late">;
	/** One SettledEvent as JSON, after `late`. */
	settleLate(eventJson: string): Promise<void>;
	/** Credits the account, once, with what a recovered request was charged beyond `delivered`. */
	creditUndelivered(requestId: string, delivered: NanoUsd): Promise<void>;
	/** Closes all leases and ends the epoch. */
	close(): Promise<void>;
	/** Asks the other instances for their idle slices of a budget; resolves when they gave them back, or after a limit. */
	recall(budget: string): Promise<void>;
}

/** The instance was fenced off: it gets no more credit. */
export class NotLive extends Error {
	override readonly name = "NotLive" as const;
}

/** An instance charged more than its lease holds: only a damaged journal can claim that. Nothing was recorded. */
export class LeaseExceeded extends Error {
	override readonly name = "LeaseExceeded" as const;
}
