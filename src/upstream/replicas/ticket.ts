import type { BreakerCall } from "./breaker.ts";
import type { CallOutcome } from "./call-outcomes.ts";
import type { Replica } from "./replica.ts";

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

/** A line of a batch that is under way. */
export interface PatientCall {
	end(): void;
}

/** Where a place goes back to. */
export interface TicketOwner {
	/** Counts the call out of what its account, or lines of batches, hold. */
	giveBack(call: BreakerCall, line: PatientCall | undefined): void;
	/** There is a place for somebody who waits. */
	wake(): void;
}

/**
 * A place at a replica, held from before the request is sent until `release`. A class, since there is one for each request: a
 * closure for each of its functions would be six objects more.
 */
export class Ticket {
	readonly replica: Replica;
	readonly #owner: TicketOwner;
	readonly #call: BreakerCall;
	readonly #line: PatientCall | undefined;
	#isHeld = true;

	constructor(owner: TicketOwner, replica: Replica, call: BreakerCall, line: PatientCall | undefined) {
		this.#owner = owner;
		this.replica = replica;
		this.#call = call;
		this.#line = line;
	}

	/** Tells that the replica answers: with the first event, and with each further one. */
	answered(): void {
		if (this.#isHeld) this.replica.answered(this.#call);
	}

	/** Gives the place back and the outcome to the breaker. Only the first call counts. */
	release(outcome: CallOutcome): void {
		if (!this.#isHeld) return;
		this.#isHeld = false;
		this.#owner.giveBack(this.#call, this.#line);
		this.replica.end(this.#call, outcome);
		this.#owner.wake();
	}

	/** After a release as `suspect`, once it is known whose fault it was. */
	judge(verdict: "failed" | "neutral"): void {
		this.replica.judge(this.#call, verdict);
	}

	/** See `Breaker`. */
	otherFailureAtMs(): number | undefined {
		return this.replica.otherFailureAtMs(this.#call);
	}
}
