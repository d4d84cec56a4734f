import type { CallOutcome } from "./breaker.ts";
import type { Replica } from "./replica.ts";

/** A place at a replica, held from before the request is sent until `release`. */
export interface Ticket {
	readonly replica: Replica;
	/** Tells that the replica answers: with the first event, and with each further one. */
	answered(): void;
	/** Gives the place back and the outcome to the breaker. Only the first call counts. */
	release(outcome: CallOutcome): void;
	/** After a release as `suspect`, once it is known whose fault it was. */
	judge(verdict: "failed" | "neutral"): void;
	/** See `Breaker`. */
	otherFailureAtMs(): number | undefined;
}

export interface AcquireOptions {
	/** Requests with the same key prefer the same replica, which has their prefix in its cache. */
	readonly affinity: string | undefined;
	/** Replicas that this request has already failed on. */
	readonly exclude: ReadonlySet<Replica>;
	readonly signal: AbortSignal;
	/** Whose request it is. */
	readonly accountId: string;
	/** A line of a batch: it takes a place that others leave, behind everybody who waits, and waits without end. */
	readonly patient?: boolean;
	/** Gives the place up to somebody who waits; only asked of `patient`. Not asked again. */
	readonly onAsked?: (() => void) | undefined;
}
