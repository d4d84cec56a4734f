import type { NanoUsd } from "../money/nano-usd.ts";
import type { Settlements } from "./settled-columns.ts";

/** A request for a grant, granted at most once per `op`. */
export interface GrantRequest {
	readonly op: string;
	readonly budget: string;
	readonly want: NanoUsd;
	/** Least useful amount: if less is available, nothing is granted. */
	readonly min: NanoUsd;
	/**
	 * True if an earlier attempt got no answer. Postgres then makes a refusal final for this `op`, so that the late
	 * attempt cannot be granted.
	 */
	readonly again: boolean;
	/** Number of the recall whose answers `unanswered` counts; null without a recall. */
	readonly ticket: number | null;
}

export interface GrantReply {
	readonly op: string;
	readonly amount: NanoUsd;
	/** Amount left for others; null if the budget has no limit. */
	readonly available: NanoUsd | null;
	/**
	 * Number of instances that may still return credit, because they have not answered or are replaying a journal. At 0 a
	 * refusal is proved.
	 */
	readonly unanswered: number;
	/**
	 * Sum of all grants to the budget's leases so far, minus its limit. Its increase between two checks is what other
	 * instances took. Null if nothing is proved: some have not answered, or all credit together is too little.
	 */
	readonly lent: bigint | null;
	/** True if other instances need this budget, so credit that no request waits for should be returned. */
	readonly contested: boolean;
	/** True if a row of this budget is locked: nothing was done. */
	readonly busy: boolean;
	/** True if by the database's clock the cap is already in another period: nothing was done. */
	readonly untimely: boolean;
}

export interface ReturnRequest {
	readonly op: string;
	readonly budget: string;
	/** 0 if the request only answers a recall. */
	readonly amount: NanoUsd;
	/** Number of the newest recall that this answers: all credit that was idle then has been returned. */
	readonly recall: number | null;
}

/** A request of another instance to return idle credit. */
export interface Recall {
	readonly budget: string;
	readonly ticket: number;
}

export interface FlushResult {
	/** True if the epoch's leases are being closed: nothing was recorded. */
	readonly late: boolean;
	/** Number of settlements that were new to Postgres. */
	readonly fresh: number;
	/** Budgets and requests whose rows are locked. Settlements with one of them were skipped. */
	readonly busy: ReadonlySet<string>;
}

/**
 * The ledger's statements for one epoch, repeatable with the same ids. A rejection means that the outcome is unknown,
 * except NotLive, which is final. No statement waits for a locked row: each returns what it skipped.
 */
export interface LedgerStore {
	grant(requests: readonly GrantRequest[]): Promise<readonly GrantReply[]>;
	/** Returns credit to the budgets. Resolves with the ops that were skipped because of a locked row. */
	giveBack(requests: readonly ReturnRequest[]): Promise<ReadonlySet<string>>;
	/** `openJson`: array of AdmittedEvent. Rejects with LeaseExceeded, which is final, if charges exceed the leases. */
	flush(settled: Settlements, openJson: string): Promise<FlushResult>;
	/**
	 * Settles one SettledEvent (JSON) of an epoch whose leases are closed. Returns the cost written off; undefined if it
	 * was settled before.
	 */
	settleLate(eventJson: string): Promise<NanoUsd | undefined>;
	/**
	 * Closes some leases; ends the epoch when all are closed. `keep` lists budgets of which settlements are still to
	 * come: their leases stay open, and these settlements count as late.
	 */
	close(keep?: readonly string[]): Promise<{ readonly closed: number; readonly done: boolean }>;
	/** Recalls idle credit of these budgets from all other instances. Returns the number with which they answer. */
	recall(budgets: readonly string[]): Promise<number>;
	/** Recalls that this epoch has not answered. */
	recalls(): Promise<readonly Recall[]>;
}

/** Thrown if the instance was fenced: it gets no more credit. */
export class NotLive extends Error {
	override readonly name = "NotLive" as const;
}

/** Thrown if charges exceed a lease, which only a damaged journal or a lost grant can cause. Nothing was recorded. */
export class LeaseExceeded extends Error {
	override readonly name = "LeaseExceeded" as const;
}
