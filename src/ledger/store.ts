import type { NanoUsd } from "../money/nano-usd.ts";
import type { Settlements } from "./settled-columns.ts";

/** A request for a grant. The same `op` is granted only once. */
export interface GrantRequest {
	readonly op: string;
	readonly budget: string;
	readonly want: NanoUsd;
	/** Less than this is useless: then nothing is granted. */
	readonly min: NanoUsd;
	/**
	 * An earlier attempt was not answered. A refusal is then final for this `op`: the earlier attempt, if late, must not
	 * grant credit that no request waits for.
	 */
	readonly again: boolean;
	/** The recall whose answers count for `unanswered`; null without a recall. */
	readonly ticket: number | null;
}

export interface GrantReply {
	readonly op: string;
	readonly amount: NanoUsd;
	/** What is left for others; null if the budget has no limit. */
	readonly available: NanoUsd | null;
	/**
	 * Instances that may still return credit: they hold some unanswered, or replay an earlier epoch's journal. At 0 a
	 * refusal is proved.
	 */
	readonly unanswered: number;
	/**
	 * For a refusal based on answers: all that leases of the budget were ever granted, minus its limit. Its rise between
	 * two checks is what left the available credit in between; a fall says nothing. Null: too little even if all is
	 * returned, or not all have answered.
	 */
	readonly lent: bigint | null;
	/** Other instances need this budget: credit without a waiting request should be returned. */
	readonly contested: boolean;
	/** A row of this budget is locked: nothing was done. */
	readonly busy: boolean;
	/** By the database's clock it is not this cap's period now, or the cap has another one: nothing was done. */
	readonly untimely: boolean;
}

export interface ReturnRequest {
	readonly op: string;
	readonly budget: string;
	/** 0: only answers a recall. */
	readonly amount: NanoUsd;
	/** The newest recall that this answers: credit idle at that time is returned. */
	readonly recall: number | null;
}

/** Another instance's request for idle credit. */
export interface Recall {
	readonly budget: string;
	readonly ticket: number;
}

export interface Flushed {
	/** The leases are being closed: nothing was recorded. */
	readonly late: boolean;
	/** Settlements that Postgres did not know before. */
	readonly fresh: number;
	/** Budgets and requests with locked rows: settlements that name one of them were skipped. */
	readonly busy: ReadonlySet<string>;
}

/**
 * The ledger's statements for one instance epoch. Each may be repeated with the same ids. A rejection means an unknown
 * outcome, except NotLive, which is final. None waits for a locked row: it reports what it skipped.
 */
export interface LedgerStore {
	grant(requests: readonly GrantRequest[]): Promise<readonly GrantReply[]>;
	/** Returns the skipped ops. */
	giveBack(requests: readonly ReturnRequest[]): Promise<ReadonlySet<string>>;
	/** `openJson`: an array of AdmittedEvent. Rejects with LeaseExceeded, finally, if the charges exceed the leases. */
	flush(settled: Settlements, openJson: string): Promise<Flushed>;
	/** One SettledEvent as JSON, after `late`. */
	settleLate(eventJson: string): Promise<void>;
	/**
	 * Closes some leases; when all are closed, ends the epoch. `keep`: budgets with settlements to come, which are late
	 * from now on. These spend their leases, which stay open for them.
	 */
	close(keep?: readonly string[]): Promise<{ readonly closed: number; readonly done: boolean }>;
	/** Recalls idle credit of these budgets from all other instances; returns the ticket of their answers. */
	recall(budgets: readonly string[]): Promise<number>;
	/** Recalls that this epoch has not answered. */
	recalls(): Promise<readonly Recall[]>;
}

/** The instance was fenced off: it gets no more credit. */
export class NotLive extends Error {
	override readonly name = "NotLive" as const;
}

/** An instance charged more than its lease holds: only a damaged journal can claim that. Nothing was recorded. */
export class LeaseExceeded extends Error {
	override readonly name = "LeaseExceeded" as const;
}
