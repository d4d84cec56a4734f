import type { Clock } from "../../base/clock.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { CallOutcome } from "../replicas/breaker.ts";
import { UpstreamFailure } from "./failure.ts";
import { connectionCode, isRefused } from "./upstream-error.ts";

/**
 * The one abort switch of an upstream call, with its deadlines. Deadlines abort the fetch; `failureOf` then says what
 * the runtime's exception really stood for.
 */
export interface CallGuard {
	readonly signal: AbortSignal;
	/** Somebody waits for the next event from now on: silence counts. */
	waitStarts(): void;
	/** It came, or the reader is busy elsewhere: silence does not count. */
	waitEnds(): void;
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
	/** The client's own signal. */
	readonly signal: AbortSignal;
	/**
	 * Whether the address takes connections. Asked once, after `connectMs` without headers: the runtime does not say
	 * whether it still connects or the server is at work, so a second connection tells.
	 */
	readonly reachable: () => Promise<boolean>;
}

type Deadline = "first event" | "silence" | "total";

export function createCallGuard(clock: Clock, options: GuardOptions): CallGuard {
	const { limits, signal: caller } = options;
	const controller = new AbortController();
	const totalAtMs = options.startedMs + limits.totalMs;
	/** Undefined while nobody waits for an event: for an answer in one piece only the total deadline holds. */
	let waitingSinceMs: number | undefined;
	let silenceMs = limits.firstEventMs;
	let first = true;
	let expired: Deadline | undefined;
	let aborted = false;
	let over = false;
	let headersSeen = false;
	let unreachable = false;
	/** Infinity once asked. */
	let askAtMs = clock.monotonicMs() + limits.connectMs;
	let cancelTimer: () => void = () => {};

	/**
	 * One timer at a time, never set further ahead than the silence limit and never moved when an event comes: when it
	 * fires it looks how long the silence really is and sets itself again for the rest.
	 */
	function arm(): void {
		const now = clock.monotonicMs();
		const toTotal = totalAtMs - now;
		if (now >= askAtMs) ask();
		const toAsk = headersSeen ? Number.POSITIVE_INFINITY : askAtMs - now;
		const toSilence = waitingSinceMs === undefined ? silenceMs : waitingSinceMs + silenceMs - now;
		if (toTotal <= 0) expire("total");
		else if (toSilence <= 0) expire(first ? "first event" : "silence");
		else cancelTimer = clock.after(Math.min(toTotal, toAsk, toSilence, limits.silenceMs), arm);
	}

	function ask(): void {
		askAtMs = Number.POSITIVE_INFINITY;
		if (headersSeen) return;
		void options.reachable().then((answer) => {
			if (answer || headersSeen || over) return;
			unreachable = true;
			controller.abort();
		});
	}

	function expire(deadline: Deadline): void {
		expired = deadline;
		controller.abort();
	}

	function abort(): void {
		aborted = true;
		controller.abort();
	}

	if (caller.aborted) abort();
	else {
		caller.addEventListener("abort", abort, { once: true });
		arm();
	}

	return {
		signal: controller.signal,
		waitStarts() {
			waitingSinceMs = clock.monotonicMs();
		},
		waitEnds() {
			waitingSinceMs = undefined;
			first = false;
			silenceMs = limits.silenceMs;
		},
		headersCame() {
			headersSeen = true;
		},
		abort,
		end() {
			over = true;
			cancelTimer();
			caller.removeEventListener("abort", abort);
		},
		failureOf(error) {
			if (error instanceof UpstreamFailure) return error;
			if (expired !== undefined)
				return new UpstreamFailure("timeout", { private: `${expired} deadline`, cause: error });
			if (aborted) return new UpstreamFailure("aborted", { private: "the caller left", cause: error });
			if (unreachable) return new UpstreamFailure("unreachable", { private: "connect deadline", cause: error });
			const text = error instanceof Error ? error.message : String(error);
			const detail = { private: `${connectionCode(error)} ${text}`, cause: error };
			return new UpstreamFailure(headersSeen ? "died" : "unreachable", detail);
		},
		outcomeOf(failure) {
			switch (failure.kind) {
				case "aborted":
				case "yielded":
				case "rejected":
				case "context_length":
					return "neutral";
				case "busy":
					// 429 is load, which other calls may not meet; 503 is a server that is not ready.
					return failure.status === 429 ? "neutral" : "suspect";
				case "timeout":
					// A long answer is no fault of the server.
					return expired === "total" ? "neutral" : "suspect";
				case "unreachable":
					return unreachable || isRefused(failure.cause) ? "failed" : "suspect";
				default:
					return "suspect";
			}
		},
	};
}
