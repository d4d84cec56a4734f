import type { Clock } from "../../base/clock.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";

export type BreakerState = "closed" | "open" | "half_open";

/**
 * Keeps calls away from a replica that fails. Opens after some failures in a row or a share of the last 20 calls; after
 * the cool-down one call is let through, whose outcome closes it or opens it for twice as long, up to a maximum.
 */
export interface Breaker {
	state(): BreakerState;
	/** Whether a call may begin now. */
	allows(): boolean;
	/** A call begins; the number goes back with its outcome, so that calls from before a change of state do not count. */
	begin(): number;
	succeeded(call: number): void;
	failed(call: number): void;
	/** The call says nothing about the replica: the client left, or its request was refused. */
	neutral(call: number): void;
	/** Milliseconds until an open breaker lets a call through; 0 in the other states. */
	coolMsLeft(): number;
}

type BreakerLimits = Pick<
	ServiceLimits,
	"breakerFailuresInRow" | "breakerFailureShare" | "breakerCoolMs" | "breakerCoolMsMax"
>;

/** The share of failures is taken over this many calls, once there were so many. */
const WINDOW_CALLS = 20;

export function createBreaker(clock: Clock, limits: BreakerLimits): Breaker {
	let state: BreakerState = "closed";
	/** Grows with each change of state. */
	let generation = 0;
	let failuresInRow = 0;
	/** Ring of the last outcomes, true for a failure. */
	let outcomes: boolean[] = [];
	let nextOutcome = 0;
	let failuresInWindow = 0;
	let coolMs = limits.breakerCoolMs;
	let openUntilMs = 0;
	let trialRuns = false;

	function change(to: BreakerState): void {
		state = to;
		generation += 1;
		failuresInRow = 0;
		outcomes = [];
		nextOutcome = 0;
		failuresInWindow = 0;
		trialRuns = false;
	}

	function open(): void {
		change("open");
		openUntilMs = clock.monotonicMs() + coolMs;
		coolMs = Math.min(coolMs * 2, limits.breakerCoolMsMax);
	}

	function settle(): void {
		if (state === "open" && clock.monotonicMs() >= openUntilMs) change("half_open");
	}

	function record(failure: boolean): void {
		if (outcomes[nextOutcome] === true) failuresInWindow -= 1;
		outcomes[nextOutcome] = failure;
		nextOutcome = (nextOutcome + 1) % WINDOW_CALLS;
		if (failure) failuresInWindow += 1;
		failuresInRow = failure ? failuresInRow + 1 : 0;
	}

	return {
		state() {
			settle();
			return state;
		},
		allows() {
			if (state === "closed") return true;
			settle();
			return state === "half_open" && !trialRuns;
		},
		begin() {
			if (state === "half_open") trialRuns = true;
			return generation;
		},
		succeeded(call) {
			if (call !== generation) return;
			if (state === "half_open") {
				change("closed");
				coolMs = limits.breakerCoolMs;
			} else if (state === "closed") record(false);
		},
		failed(call) {
			if (call !== generation) return;
			if (state === "half_open") return open();
			if (state !== "closed") return;
			record(true);
			const share = failuresInWindow / WINDOW_CALLS;
			const manyOfWindow = outcomes.length === WINDOW_CALLS && share >= limits.breakerFailureShare;
			if (failuresInRow >= limits.breakerFailuresInRow || manyOfWindow) open();
		},
		neutral(call) {
			if (call === generation) trialRuns = false;
		},
		coolMsLeft() {
			return state === "open" ? Math.max(0, openUntilMs - clock.monotonicMs()) : 0;
		},
	};
}
