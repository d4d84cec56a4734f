import type { NanoUsd } from "../money/nano-usd.ts";
import type { Settlements } from "./settled-columns.ts";

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
	/** The recall whose answers count for `unanswered`; null if others were not asked. */
	readonly ticket: number | null;
}

export interface GrantReply {
	readonly op: string;
	readonly amount: NanoUsd;
	/** What is left for others; null if the budget has no limit. */
	readonly available: NanoUsd | null;
	/**
	 * How many instances may yet give back something that would help: they hold some and have not answered, or hand in what
	 * an earlier epoch of theirs left. At 0 a refusal is proved.
	 */
	readonly unanswered: number;
	/**
	 * Of a refusal that rests on answers: all that leases of the budget were ever granted, less its limit. By how much it has
	 * risen between two looks is what left the available credit meanwhile; one that fell says nothing. Null: too little is
	 * there even if all came back, or not all have answered.
	 */
	readonly lent: bigint | null;
	/** Others lack this budget too: nothing is to be kept that no request needs. */
	readonly contested: boolean;
	/** Somebody holds a row of this budget: nothing was done. */
	readonly busy: boolean;
	/** By the database's clock that period of a cap is over or not yet there, or the cap has another one: nothing was done. */
	readonly untimely: boolean;
}

export interface ReturnRequest {
	readonly op: string;
	readonly budget: string;
	/** 0: an answer to a recall alone. */
	readonly amount: NanoUsd;
	/** The newest recall that this answers: what was idle when it was heard is back. */
	readonly recall: number | null;
}

/** What others ask an instance for. */
export interface Recall {
	readonly budget: string;
	readonly ticket: number;
}

export interface Flushed {
	/** The leases are being closed: nothing was recorded. */
	readonly late: boolean;
	/** Settlements that Postgres did not know before. */
	readonly fresh: number;
	/** Budgets and requests of which somebody holds a row: settlements that name one of them were left out. */
	readonly busy: ReadonlySet<string>;
}

/**
 * The ledger's statements for one instance epoch. Each may be repeated with the same ids. A rejection means that the
 * outcome is unknown, except NotLive, which is final. None waits for a row that somebody holds: it says which it left out.
 */
export interface LedgerStore {
	grant(requests: readonly GrantRequest[]): Promise<readonly GrantReply[]>;
	/** Gives the ops that were left out. */
	giveBack(requests: readonly ReturnRequest[]): Promise<ReadonlySet<string>>;
	/**
	 * `openJson`: an array of AdmittedEvent. Rejects with LeaseExceeded, for good, if the charges are more than the
	 * leases hold.
	 */
	flush(settled: Settlements, openJson: string): Promise<Flushed>;
	/** One SettledEvent as JSON, after `late`. */
	settleLate(eventJson: string): Promise<void>;
	/**
	 * Closes some leases; when all are closed, ends the epoch. `keep`: budgets on which something is still to be settled,
	 * which is late from now on: it spends what their leases have, and those stay open for it.
	 */
	close(keep?: readonly string[]): Promise<{ readonly closed: number; readonly done: boolean }>;
	/** Asks all other instances for what lies idle of these budgets; gives the ticket of their answers. */
	recall(budgets: readonly string[]): Promise<number>;
	/** What others ask this epoch for and it has not answered. */
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
