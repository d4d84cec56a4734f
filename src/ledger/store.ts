import type { NanoUsd } from "../money/nano-usd.ts";
import type { Settlements } from "./settled-columns.ts";

/** A request for a grant, granted at most once per `op`. */
export interface GrantRequest {
	readonly op: string;
	readonly budget: string;
	readonly want: NanoUsd;
	/** Least useful amount: if it is not available, nothing is granted. */
	readonly min: NanoUsd;
	/**
	 * True if an earlier attempt got no answer: a refusal is then final for this `op`, so that a late attempt cannot be
	 * granted.
	 */
	readonly again: boolean;
	/** Recall whose answers count for `unanswered`; null without one. */
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
	 * For a refusal based on answers: sum ever granted to the budget's leases, minus its limit. Its increase between two
	 * checks is what others took in between. Null: too little even if all is returned, or not all have answered.
	 */
	readonly lent: bigint | null;
	/** True if other instances need this budget: credit without a waiting request should be returned. */
	readonly contested: boolean;
	/** True if a row of this budget is locked: nothing was done. */
	readonly busy: boolean;
	/** True if by the database's clock this is not the cap's period: nothing was done. */
	readonly untimely: boolean;
}

export interface ReturnRequest {
	readonly op: string;
	readonly budget: string;
	/** 0 for an answer without a return. */
	readonly amount: NanoUsd;
	/** Newest recall that this answers: credit that was idle then is returned. */
	readonly recall: number | null;
}

/** Request of another instance for idle credit. */
export interface Recall {
	readonly budget: string;
	readonly ticket: number;
}

export interface Flushed {
	/** True if the leases are being closed: nothing was recorded. */
	readonly late: boolean;
	/** Number of settlements that were new to Postgres. */
	readonly fresh: number;
	/** Budgets and requests with locked rows; settlements with one of them were skipped. */
	readonly busy: ReadonlySet<string>;
}

/**
 * The ledger's statements for one epoch, repeatable with the same ids. A rejection means an unknown outcome, except
 * NotLive, which is final. None waits for a locked row: results list what was skipped.
 */
export interface LedgerStore {
	grant(requests: readonly GrantRequest[]): Promise<readonly GrantReply[]>;
	/** Returns the skipped ops. */
	giveBack(requests: readonly ReturnRequest[]): Promise<ReadonlySet<string>>;
	/** `openJson`: array of AdmittedEvent. Rejects with LeaseExceeded, which is final, if charges exceed the leases. */
	flush(settled: Settlements, openJson: string): Promise<Flushed>;
	/** Settles one SettledEvent (JSON) after `late`. */
	settleLate(eventJson: string): Promise<void>;
	/**
	 * Closes some leases; ends the epoch when all are closed. `keep`: budgets with settlements to come, which are late
	 * from now on and spend the leases that stay open.
	 */
	close(keep?: readonly string[]): Promise<{ readonly closed: number; readonly done: boolean }>;
	/** Recalls idle credit of these budgets from all other instances; returns the ticket of their answers. */
	recall(budgets: readonly string[]): Promise<number>;
	/** Recalls that this epoch has not answered. */
	recalls(): Promise<readonly Recall[]>;
}

/** The instance was fenced: it gets no more credit. */
export class NotLive extends Error {
	override readonly name = "NotLive" as const;
}

/** An instance charged more than its lease holds, which only a damaged journal can cause. Nothing was recorded. */
export class LeaseExceeded extends Error {
	override readonly name = "LeaseExceeded" as const;
}
