import type { NanoUsd } from "../money/nano-usd.ts";
import type { Settlements } from "./event.ts";

/** Request for a grant of credit, executed at most once per `op`. */
export interface GrantRequest {
	readonly op: string;
	readonly budget: string;
	readonly want: NanoUsd;
	/** Minimum useful amount: if less is available, the request gets nothing. */
	readonly min: NanoUsd;
	/**
	 * True if an earlier attempt got no answer. Postgres then makes a refusal final for this `op`, so that the earlier
	 * attempt cannot succeed later.
	 */
	readonly again: boolean;
	/** Number of the recall whose missing answers the reply counts in `unanswered`; null if there was no recall. */
	readonly ticket: number | null;
}

export interface GrantReply {
	readonly op: string;
	readonly amount: NanoUsd;
	/** Amount available for later grants; null if the budget has no limit. */
	readonly available: NanoUsd | null;
	/**
	 * Number of instances that may still return credit, because they have not answered the recall or are replaying a
	 * journal. At 0 a refusal proves a shortage.
	 */
	readonly unanswered: number;
	/**
	 * Sum of all grants to the budget's leases so far, minus its limit; its increase is the credit granted to others.
	 * Null while instances have not answered, or if all credit together is too little.
	 */
	readonly lent: bigint | null;
	/** True if other instances need credit of this budget. The caller then returns credit that no request waits for. */
	readonly contested: boolean;
	/** True if a row of this budget is locked. Nothing was executed. */
	readonly busy: boolean;
	/** True if by the database's clock the cap is already in another period. Nothing was executed. */
	readonly untimely: boolean;
}

export interface ReturnRequest {
	readonly op: string;
	readonly budget: string;
	/** Returned credit; 0 if the request only answers a recall. */
	readonly amount: NanoUsd;
	/** Number of the newest recall that this return answers: all credit that was idle then has been returned. */
	readonly recall: number | null;
}

/** Request of another instance to return idle credit of a budget. */
export interface RecallRequest {
	readonly budget: string;
	readonly ticket: number;
}

export interface FlushResult {
	/** True if the epoch's leases are being closed. Nothing was recorded. */
	readonly late: boolean;
	/** Number of settlements that were new to Postgres. */
	readonly fresh: number;
	/** Budgets and requests whose rows are locked. Settlements that need one of these rows were skipped. */
	readonly busy: ReadonlySet<string>;
}

/**
 * The ledger's statements for one epoch, repeatable with the same ids. A rejection leaves the outcome unknown, except
 * InstanceNotLive, which is final. No statement waits for a locked row: each returns what it skipped.
 */
export interface LedgerStore {
	grant(requests: readonly GrantRequest[]): Promise<readonly GrantReply[]>;
	/** Returns credit to the budgets. Resolves with the ops that were skipped because of a locked row. */
	giveBack(requests: readonly ReturnRequest[]): Promise<ReadonlySet<string>>;
	/** Records settlements and running requests (`openJson`: AdmittedEvent[]). Rejects with LeaseExceeded, finally. */
	flush(settled: Settlements, openJson: string): Promise<FlushResult>;
	/**
	 * Settles one SettledEvent (as JSON) of an epoch whose leases are closed. Returns the cost written off; undefined if
	 * the request was settled before.
	 */
	settleLate(eventJson: string): Promise<NanoUsd | undefined>;
	/**
	 * Closes a batch of leases; ends the epoch when all are closed. `keep` lists budgets with settlements still to come:
	 * their leases stay open, and these settlements will count as late.
	 */
	close(keep?: readonly string[]): Promise<{ readonly closed: number; readonly done: boolean }>;
	/** Recalls idle credit of these budgets from all other instances. Returns the recall's number. */
	recall(budgets: readonly string[]): Promise<number>;
	/** Recalls that this epoch has not answered. */
	recalls(): Promise<readonly RecallRequest[]>;
}

/** Thrown if the instance was fenced off, and so gets no more credit. */
export class InstanceNotLive extends Error {
	override readonly name = "InstanceNotLive" as const;
}

/** Charges exceed a lease, which only a damaged journal or a lost grant can cause. Nothing was recorded. */
export class LeaseExceeded extends Error {
	override readonly name = "LeaseExceeded" as const;
}
