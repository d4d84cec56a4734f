import type { ReportedUsage } from "../usage.ts";
import type { BreakerCall } from "./breaker.ts";
import type { CallOutcome } from "./call-outcomes.ts";
import type { SentPrompt } from "./prefill.ts";
import type { RoutedPrompt } from "./prompt-prefix.ts";
import type { Replica } from "./replica.ts";

export interface AcquireOptions {
	/** Undefined if the choice of a replica does not depend on the prompt. */
	readonly routed: RoutedPrompt | undefined;
	/** Replicas on which this request has failed. */
	readonly exclude: ReadonlySet<Replica>;
	readonly signal: AbortSignal;
	readonly accountId: string;
	/** True for a batch line: it uses spare places after all waiting requests, and waits without limit. */
	readonly patient?: boolean;
	/** For batch lines; called at most once: the line should yield its place to a waiting request. */
	readonly onAsked?: (() => void) | undefined;
}

export interface PlaceWaiter {
	readonly options: AcquireOptions;
	readonly serve: (ticket: Ticket) => void;
	readonly refuse: (fault: Error) => void;
}

/** Functions of the pool that a ticket calls. */
export interface TicketOwner {
	/** Subtracts the call from its account's places; for a batch line, calls `endLine` instead. */
	giveBack(call: BreakerCall, endLine: (() => void) | undefined): void;
	/** Called when a place may have become free for a waiting request. */
	wake(): void;
}

/** A place at a replica, occupied until `release`. A class, because closures would be six more objects per request. */
export class Ticket {
	readonly replica: Replica;
	readonly #owner: TicketOwner;
	readonly #call: BreakerCall;
	readonly #endLine: (() => void) | undefined;
	readonly #prompt: SentPrompt | undefined;
	#isHeld = true;

	constructor(
		owner: TicketOwner,
		replica: Replica,
		call: BreakerCall,
		endLine: (() => void) | undefined,
		routed: RoutedPrompt | undefined,
	) {
		this.#owner = owner;
		this.replica = replica;
		this.#call = call;
		this.#endLine = endLine;
		this.#prompt = routed && replica.prefill.begin(routed);
	}

	/** Call it for each event from the replica. */
	answered(): void {
		if (!this.#isHeld) return;
		this.replica.answered(this.#call);
		if (this.#prompt?.isStarted === false) this.replica.prefill.started(this.#prompt);
	}

	/** Frees the place and passes the outcome to the breaker. Only the first call has an effect. */
	release(outcome: CallOutcome, usage?: ReportedUsage): void {
		if (!this.#isHeld) return;
		this.#isHeld = false;
		if (this.#prompt !== undefined) {
			const { promptTokens, cachedTokens = 0 } = usage ?? {};
			// Some servers never report cached tokens, so a zero from such a server proves nothing.
			const isTold = promptTokens !== undefined && (cachedTokens > 0 || this.replica.tellsCached());
			this.replica.prefill.ended(this.#prompt, outcome === "ok", isTold ? cachedTokens / promptTokens : undefined);
		}
		this.#owner.giveBack(this.#call, this.#endLine);
		this.replica.end(this.#call, outcome);
		this.#owner.wake();
	}

	/** Judges a call that ended as `suspect`, once it is known whether replica or request was at fault. */
	judge(verdict: "failed" | "neutral"): void {
		this.replica.judge(this.#call, verdict);
	}

	/** Monotonic time of the last failure of another call after the replica's last answer; undefined without one. */
	otherFailureAtMs(): number | undefined {
		return this.replica.otherFailureAtMs(this.#call);
	}
}
