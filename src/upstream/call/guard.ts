import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { createLongRunWatch } from "../../base/moments.ts";
import { SlotPool } from "../../base/slot-pool.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { CallOutcome } from "../replicas/call-outcomes.ts";
import { connectionErrorCode, isRefused, stoppingFailure, UpstreamFailure } from "./failure.ts";

export interface GuardOptions {
	readonly limits: Pick<ServiceLimits, "connectMs" | "firstEventMs" | "silenceMs" | "totalMs">;
	/** Monotonic start of the total deadline, which covers all attempts of a request. */
	readonly startedMs: number;
	/** Undefined once the caller closes the call itself. */
	readonly clientSignal: AbortSignal | undefined;
	/**
	 * Tests the address with a second connection. Called once, after `connectMs` without headers, because the runtime
	 * does not tell whether it is still connecting.
	 */
	isReachable(): Promise<boolean>;
}

const ONCE = { once: true } as const;

/** What aborted the call: a deadline, the caller, the stop of the process, or an unreachable address. */
type AbortCause = "first event" | "silence" | "total" | "aborted" | "stopping" | "unreachable";

/** "abandoned": ended before the server responded. */
type GuardState = "connecting" | "answering" | "abandoned" | "ended";

const TRANSITIONS: Readonly<Record<GuardState, readonly GuardState[]>> = {
	connecting: ["answering", "abandoned"],
	answering: ["ended"],
	abandoned: [],
	ended: [],
};

/**
 * Aborts a call at its deadlines or when the client disconnects. `failureOf` converts the runtime's exception. Most
 * calls are short, so timers and listeners start only after a moment, or with `watch`. A class, because closures would
 * be ten more objects per request.
 */
export class CallGuard implements EventListenerObject, OpenCall {
	readonly #clock: Clock;
	readonly #openCalls: OpenCalls;
	readonly #options: GuardOptions;
	readonly #controller = new AbortController();
	readonly #totalAtMs: number;
	/** Start of the wait for the next event; undefined outside such a wait, and always for unstreamed answers. */
	#waitingSinceMs: number | undefined;
	#silenceMs: number;
	#first = true;
	#state: GuardState = "connecting";
	#cause: AbortCause | undefined;
	#watched = false;
	/** Time at which `isReachable` is called; infinite once it was called. */
	#askAtMs: number;
	#cancelTimer: (() => void) | undefined;
	/** Number from `openCalls.begin`; undefined if the client had already disconnected. */
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

	/** Starts watching the client's signal and the deadlines. */
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

	handleEvent(): void {
		this.abort();
	}

	/** Call it when the reader starts waiting for an event: the silence deadline runs from the first such call. */
	waitStarts(): void {
		this.#waitingSinceMs ??= this.#clock.monotonicMs();
	}

	/** Call it instead of `waitStarts` once all choices have finished: shortens the silence deadline to `limitMs`. */
	waitsForEnd(limitMs: number): void {
		this.waitStarts();
		if (limitMs >= this.#silenceMs) return;
		this.#silenceMs = limitMs;
		this.#cancelTimer?.();
		this.#arm();
	}

	/** Call it for an event without content for the client: the silence deadline restarts. */
	waitGoesOn(): void {
		this.#waitingSinceMs = this.#clock.monotonicMs();
	}

	/** Call it when content arrived or the reader is busy: the silence deadline stops. */
	waitEnds(): void {
		this.#waitingSinceMs = undefined;
		this.#first = false;
		this.#silenceMs = this.#options.limits.silenceMs;
	}

	/** From now on the caller closes the call, and the client's signal is ignored. */
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
	 * Sets the only timer, at most the silence limit ahead. Events do not move it; it checks the silence when it fires.
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
		void this.#options.isReachable().then((answer) => {
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

	/** Converts an error to a failure. A broken connection is `died` after `headersCame`, `unreachable` before. */
	failureOf(error: unknown): UpstreamFailure {
		if (error instanceof UpstreamFailure) return error;
		const cause = this.#cause;
		if (cause === "stopping") return stoppingFailure(error);
		if (cause === "aborted") return new UpstreamFailure("aborted", { private: "the caller left", cause: error });
		if (cause === "unreachable")
			return new UpstreamFailure("unreachable", { private: "connect deadline", cause: error });
		if (cause !== undefined) return new UpstreamFailure("timeout", { private: `${cause} deadline`, cause: error });
		const text = error instanceof Error ? error.message : String(error);
		const detail = { private: `${connectionErrorCode(error)} ${text}`, cause: error };
		const hasAnswered = this.#state === "answering" || this.#state === "ended";
		return new UpstreamFailure(hasAnswered ? "died" : "unreachable", detail);
	}

	outcomeOf(failure: UpstreamFailure): CallOutcome {
		switch (failure.kind) {
			case "aborted":
			case "stopping":
			case "yielded":
			case "rejected":
			case "context_length":
			case "crowded":
				return "neutral";
			case "busy":
				// 429 and 529 mean load, so the next call may succeed. 503 means that the server is not ready.
				return failure.status === 503 ? "suspect" : "neutral";
			case "timeout":
				// The total deadline ends a long answer, which is not the server's fault.
				return this.#cause === "total" ? "neutral" : "suspect";
			case "unreachable":
				return this.#cause === "unreachable" || isRefused(failure.cause) ? "failed" : "suspect";
			default:
				return "suspect";
		}
	}
}

export interface OpenCall {
	/** Called if the call is still running after a moment. */
	watch(): void;
	letGo(): void;
	slot: number;
}

export type OpenCalls = ReturnType<typeof createOpenCalls>;

/** Registry of running calls. A call that is answered within a moment needs no listener, timer or slot. */
export function createOpenCalls(clock: Clock) {
	const young = createLongRunWatch<OpenCall>(clock, (call) => call.watch());
	const lasting = new SlotPool<OpenCall>();
	let areLetGo = false;
	return {
		/** Registers a call, and calls its `watch` if it is still running after a moment. Returns a number for `end`. */
		begin: young.begin,
		end: young.end,
		/** Adds a longer call, which `letGo` will end; ends it immediately if `letGo` was already called. */
		lasts(call: OpenCall) {
			call.slot = lasting.take(call);
			if (areLetGo) call.letGo();
		},
		leaves: (call: OpenCall) => void lasting.release(call.slot, call),
		/** Called when the process stops: ends all longer calls, and any that is added later. */
		letGo() {
			areLetGo = true;
			for (const call of [...lasting]) call.letGo();
		},
	};
}
