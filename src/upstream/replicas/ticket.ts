import type { BreakerCall } from "./breaker.ts";
import type { CallOutcome } from "./call-outcomes.ts";
import type { Replica } from "./replica.ts";

export interface AcquireOptions {
	/** Requests with the same key prefer the same replica, whose cache has their prefix. */
	readonly affinity: string | undefined;
	/** Replicas on which this request has failed. */
	readonly exclude: ReadonlySet<Replica>;
	readonly signal: AbortSignal;
	readonly accountId: string;
	/** True for a batch line: it takes spare places after all waiting requests, and waits without limit. */
	readonly patient?: boolean;
	/** Called at most once, for `patient` only, to yield the place to a waiting request. */
	readonly onAsked?: (() => void) | undefined;
}

/** A request that waits for a place. */
export interface Waiter {
	readonly options: AcquireOptions;
	readonly serve: (ticket: Ticket) => void;
	readonly refuse: (fault: Error) => void;
}

/** A running batch line. */
export interface PatientCall {
	end(): void;
}

/** Functions of the pool that a ticket uses. */
export interface TicketOwner {
	/** Removes the call from its account's places, or from the batch lines. */
	giveBack(call: BreakerCall, line: PatientCall | undefined): void;
	/** Called when a place may be free for a waiting request. */
	wake(): void;
}

/** A place at a replica, in use until `release`. A class, because closures would be six more objects per request. */
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

	/** Reports an event of the replica, the first or a further one. */
	answered(): void {
		if (this.#isHeld) this.replica.answered(this.#call);
	}

	/** Frees the place and passes the outcome to the breaker. Only the first call counts. */
	release(outcome: CallOutcome): void {
		if (!this.#isHeld) return;
		this.#isHeld = false;
		this.#owner.giveBack(this.#call, this.#line);
		this.replica.end(this.#call, outcome);
		this.#owner.wake();
	}

	/** Judges a release as `suspect` once it is known who was at fault. */
	judge(verdict: "failed" | "neutral"): void {
		this.replica.judge(this.#call, verdict);
	}

	/** See `createBreaker`. */
	otherFailureAtMs(): number | undefined {
		return this.replica.otherFailureAtMs(this.#call);
	}
}
