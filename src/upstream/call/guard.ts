import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { CallOutcome } from "../replicas/call-outcomes.ts";
import { stopping, UpstreamFailure } from "./failure.ts";
import type { OpenCall, OpenCalls } from "./open-calls.ts";
import { connectionCode, isOurShortage, isRefused } from "./upstream-error.ts";

/**
 * The one abort switch of an upstream call, with its deadlines. Deadlines abort the fetch; `failureOf` then says what
 * the runtime's exception really stood for.
 */
export interface CallGuard extends EventListenerObject {
	readonly signal: AbortSignal;
	/** Looks after the client and the deadlines from now on, without waiting whether the call lasts. */
	watch(): void;
	/** Somebody waits for the next event from now on, if nobody did: silence counts. */
	waitStarts(): void;
	/** One came that holds nothing for the client: the silence begins anew. */
	waitGoesOn(): void;
	/** It came, or the reader is busy elsewhere: silence does not count. */
	waitEnds(): void;
	/** The client's signal is looked at no more: who called closes the call himself. */
	callerCloses(): void;
	/** The server has begun to answer: the connection stands. */
	headersCame(): void;
	/** Aborts the call at once. */
	abort(): void;
	/** The call is over: no timer and no listener stays behind. */
	end(): void;
	/** After `headersCame` a broken connection is a broken answer. */
	failureOf(error: unknown): UpstreamFailure;
	/** What the failure says of the replica. */
	outcomeOf(failure: UpstreamFailure): CallOutcome;
}

export interface GuardOptions {
	readonly limits: Pick<ServiceLimits, "connectMs" | "firstEventMs" | "silenceMs" | "totalMs">;
	/** Monotonic; the total deadline runs from here over all attempts. */
	readonly startedMs: number;
	/** Undefined once the caller closes the call himself. */
	readonly clientSignal: AbortSignal | undefined;
	/**
	 * Whether the address takes connections. Asked once, after `connectMs` without headers: the runtime does not say
	 * whether it still connects or the server is at work, so a second connection tells.
	 */
	reachable(): Promise<boolean>;
}

const ONCE = { once: true } as const;

/** Why the call was aborted: by a deadline, by its caller or by the stop of the process, or since the address takes no connection. */
type AbortCause = "first event" | "silence" | "total" | "aborted" | "stopping" | "unreachable";

/** "abandoned": over before the server began to answer. */
type GuardState = "connecting" | "answering" | "abandoned" | "ended";

const TRANSITIONS: Readonly<Record<GuardState, readonly GuardState[]>> = {
	connecting: ["answering", "abandoned"],
	answering: ["ended"],
	abandoned: [],
	ended: [],
};

/**
 * Watched from the moment on that it lasts: the client that left before is noticed then, and a deadline that passed.
 */
export function createCallGuard(deps: { clock: Clock; openCalls: OpenCalls }, options: GuardOptions): CallGuard {
	return new Guard(deps, options);
}

/** A class, since there is one for each request: a closure for each of its functions would be ten objects more. */
class Guard implements CallGuard, OpenCall {
	readonly #clock: Clock;
	readonly #openCalls: OpenCalls;
	readonly #options: GuardOptions;
	readonly #controller = new AbortController();
	readonly #totalAtMs: number;
	/** Undefined while nobody waits for an event: for an answer in one piece only the total deadline holds. */
	#waitingSinceMs: number | undefined;
	#silenceMs: number;
	#first = true;
	#state: GuardState = "connecting";
	/** The first one counts: what follows is of its making. */
	#cause: AbortCause | undefined;
	#watched = false;
	/** Infinity once asked. */
	#askAtMs: number;
	#cancelTimer: (() => void) | undefined;
	/** Undefined if it never began: the client had left. */
	#moment: number | undefined;
	slot = -1;

	constructor({ clock, openCalls }: { clock: Clock; openCalls: OpenCalls }, options: GuardOptions) {
		const { limits, clientSignal, startedMs } = options;
		this.#clock = clock;
		this.#openCalls = openCalls;
		this.#options = options;
		this.#totalAtMs = startedMs + limits.totalMs;
		this.#silenceMs = limits.firstEventMs;
		this.#askAtMs = clock.monotonicMs() + limits.connectMs;
		if (clientSignal?.aborted) this.abort();
		else this.#moment = openCalls.begin(this);
	}

	watch(): void {
		if (this.#watched) return;
		this.#watched = true;
		const { clientSignal } = this.#options;
		if (clientSignal?.aborted) this.abort();
		else {
			clientSignal?.addEventListener("abort", this, ONCE);
			this.#arm();
			this.#openCalls.lasts(this);
		}
	}

	get signal(): AbortSignal {
		return this.#controller.signal;
	}

	/** The caller's signal aborts, or another one that was asked to tell. */
	handleEvent(): void {
		this.abort();
	}

	waitStarts(): void {
		this.#waitingSinceMs ??= this.#clock.monotonicMs();
	}

	waitGoesOn(): void {
		this.#waitingSinceMs = this.#clock.monotonicMs();
	}

	waitEnds(): void {
		this.#waitingSinceMs = undefined;
		this.#first = false;
		this.#silenceMs = this.#options.limits.silenceMs;
	}

	callerCloses(): void {
		this.#openCalls.leaves(this);
		this.#options.clientSignal?.removeEventListener("abort", this);
	}

	headersCame(): void {
		if (this.#state === "connecting") this.#enter("answering");
	}

	abort(): void {
		this.#abortFor("aborted");
	}

	letGo(): void {
		this.#abortFor("stopping");
	}

	end(): void {
		if (this.#state === "connecting") this.#enter("abandoned");
		else if (this.#state === "answering") this.#enter("ended");
		if (this.#moment !== undefined) this.#openCalls.end(this.#moment);
		if (!this.#watched) return;
		this.#cancelTimer?.();
		this.callerCloses();
	}

	/**
	 * One timer at a time, never set further ahead than the silence limit and never moved when an event comes: when it
	 * fires it looks how long the silence really is and sets itself again for the rest.
	 */
	#arm(): void {
		const now = this.#clock.monotonicMs();
		const toTotal = this.#totalAtMs - now;
		if (now >= this.#askAtMs) this.#ask();
		const toAsk = this.#state === "connecting" ? this.#askAtMs - now : Number.POSITIVE_INFINITY;
		const toSilence =
			this.#waitingSinceMs === undefined ? this.#silenceMs : this.#waitingSinceMs + this.#silenceMs - now;
		if (toTotal <= 0) this.#abortFor("total");
		else if (toSilence <= 0) this.#abortFor(this.#first ? "first event" : "silence");
		else {
			const delayMs = Math.min(toTotal, toAsk, toSilence, this.#options.limits.silenceMs);
			this.#cancelTimer = this.#clock.after(delayMs, () => this.#arm());
		}
	}

	#ask(): void {
		this.#askAtMs = Number.POSITIVE_INFINITY;
		if (this.#state !== "connecting") return;
		void this.#options.reachable().then((answer) => {
			if (!answer && this.#state === "connecting") this.#abortFor("unreachable");
		});
	}

	#abortFor(cause: AbortCause): void {
		this.#cause ??= cause;
		this.#controller.abort();
	}

	#enter(state: GuardState): void {
		assert(TRANSITIONS[this.#state].includes(state), "a call connects before it answers and ends once");
		this.#state = state;
	}

	failureOf(error: unknown): UpstreamFailure {
		if (error instanceof UpstreamFailure) return error;
		const cause = this.#cause;
		if (cause === "stopping") return stopping(error);
		if (cause === "aborted") return new UpstreamFailure("aborted", { private: "the caller left", cause: error });
		if (cause === "unreachable")
			return new UpstreamFailure("unreachable", { private: "connect deadline", cause: error });
		if (cause !== undefined) return new UpstreamFailure("timeout", { private: `${cause} deadline`, cause: error });
		const text = error instanceof Error ? error.message : String(error);
		const detail = { private: `${connectionCode(error)} ${text}`, cause: error };
		if (this.#state === "answering" || this.#state === "ended") return new UpstreamFailure("died", detail);
		return new UpstreamFailure(isOurShortage(error) ? "shortage" : "unreachable", detail);
	}

	outcomeOf(failure: UpstreamFailure): CallOutcome {
		switch (failure.kind) {
			case "aborted":
			case "stopping":
			case "yielded":
			case "rejected":
			case "context_length":
			case "shortage":
			case "crowded":
				return "neutral";
			case "busy":
				// 429 is load, which other calls may not meet; 503 is a server that is not ready.
				return failure.status === 429 ? "neutral" : "suspect";
			case "timeout":
				// A long answer is no fault of the server.
				return this.#cause === "total" ? "neutral" : "suspect";
			case "unreachable":
				return this.#cause === "unreachable" || isRefused(failure.cause) ? "failed" : "suspect";
			default:
				return "suspect";
		}
	}
}
