import type { Clock } from "../../base/clock.ts";
import { createStates } from "../../base/states.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { type CallOutcome, createCallOutcomes, isOwnFailure, type RecordedOutcome } from "./call-outcomes.ts";

export type BreakerState = "closed" | "open" | "half_open";

/** A call to a replica; pass it to `end` with its outcome. */
export interface BreakerCall {
	readonly accountId: string;
	/** Number of state changes before the call. If the state changes during the call, its outcome is ignored. */
	readonly generation: number;
	failure?: RecordedOutcome;
}

type BreakerLimits = Pick<
	ServiceLimits,
	"breakerFailuresInRow" | "breakerFailureShare" | "breakerCoolMs" | "breakerCoolMsMax"
>;

/** If this many accounts fail and none is answered, the replica is at fault. Smaller numbers are remembered by id. */
const FAILING_ACCOUNTS_MAX = 64;
/** If this many accounts fail at the replica and are answered by other replicas, the replica is at fault. */
const PROVING_ACCOUNTS = 5;
/**
 * Milliseconds after which a second trial may run in parallel to the first. Less than the default wait for a place, so
 * that a waiting request can become the second trial.
 */
const TRIAL_ALONE_MS = 5_000;

const TRANSITIONS: Readonly<Record<BreakerState, readonly BreakerState[]>> = {
	closed: ["open", "half_open"],
	open: ["half_open"],
	half_open: ["open", "closed"],
};

/**
 * Keeps calls away from a failing replica. The breaker opens if several calls in a row fail, or a share of the last 20.
 * After a cool-down it admits one trial call, which closes it or opens it for twice as long, up to a maximum. If the
 * trial is slow, another may start.
 *
 * A failure may be the request's fault, and no account may make a model unavailable to others. So failures of a single
 * account exclude only that account. Failures of several accounts exclude none while the health check succeeds and other
 * accounts get answers. If no other account calls, the failing accounts are excluded, and the next account's call is a
 * trial; if FAILING_ACCOUNTS_MAX accounts fail, the breaker opens. A failure proved to be the replica's own counts for
 * all accounts. The proof is another replica's answer to the same request, if no other account got an answer here or
 * several accounts failed.
 */
export function createBreaker(clock: Clock, limits: () => BreakerLimits, healthy: () => boolean) {
	const outcomes = createCallOutcomes(clock, healthy);
	const states = createStates(TRANSITIONS, "closed");
	let generation = 0;
	let coolMs = limits().breakerCoolMs;
	/** End of the cool-down: for all accounts if the state is open, otherwise for those in `resting`. */
	let coolUntilMs = 0;
	/** Accounts that are refused because only they failed; fewer than FAILING_ACCOUNTS_MAX. */
	const resting = new Set<string>();
	/** Monotonic time before which no further trial call starts. */
	let triedUntilMs = 0;

	function change(to: BreakerState): void {
		states.enter(to);
		generation += 1;
		outcomes.clear();
		resting.clear();
		triedUntilMs = 0;
	}

	const isCooling = () => clock.monotonicMs() < coolUntilMs;

	function cool(): void {
		coolUntilMs = clock.monotonicMs() + coolMs;
		coolMs = Math.min(coolMs * 2, limits().breakerCoolMsMax);
	}

	function open(): void {
		change("open");
		cool();
	}

	function settle(): void {
		if (states.is("open") && !isCooling()) change("half_open");
	}

	function rests(accountId: string): boolean {
		return resting.has(accountId) && isCooling();
	}

	/** Refuses these accounts during the cool-down, because the fault may be theirs. Others are tried one at a time. */
	function rest(accounts: ReadonlySet<string>): void {
		if (!isCooling()) resting.clear();
		const known = [...resting, ...accounts];
		if (states.is("closed") && accounts.size > 1) change("half_open");
		for (const accountId of known) resting.add(accountId);
		cool();
	}

	function answered(call: BreakerCall): void {
		if (states.is("half_open")) {
			change("closed");
			coolMs = limits().breakerCoolMs;
			// Records the answer again, because `change` cleared it, and earlier failures would make the next call a trial.
			outcomes.answered(call.accountId);
		} else if (states.is("closed")) {
			outcomes.answered(call.accountId);
			if (resting.size === 0) return;
			resting.clear();
			coolMs = limits().breakerCoolMs;
		}
	}

	/** True while a few accounts may be at fault: a healthy server may fail on a request that another one answers. */
	function isOfFew(proved: readonly RecordedOutcome[]): boolean {
		if (proved.some(({ judged }) => !judged)) return false;
		const accounts = new Set(proved.map(({ accountId }) => accountId));
		if (isCooling()) for (const accountId of resting) accounts.add(accountId);
		return accounts.size < PROVING_ACCOUNTS && (states.is("half_open") || outcomes.othersAnswered(proved));
	}

	function noteFailure(call: BreakerCall, verdict: "failed" | "suspect"): void {
		// Remembers the failures of at least two accounts, with a margin for failures that may be judged neutral later.
		call.failure = outcomes.failed(call.accountId, verdict, 2 * limits().breakerFailuresInRow);
		triedUntilMs = 0;
		weigh(call.accountId);
	}

	/** Opens the breaker or refuses accounts if the known failures suffice for it. */
	function weigh(accountId: string): void {
		const trial = states.is("half_open");
		const enough = trial ? 1 : limits().breakerFailuresInRow;
		const failures = outcomes.failuresInRow();
		const provedInRow = failures.filter(isOwnFailure);
		const provedMostly = trial ? [] : outcomes.provedMostly(limits().breakerFailureShare);
		const proved = provedInRow.length >= enough ? provedInRow : provedMostly;
		if (proved.length > 0 && !isOfFew(proved)) {
			open();
			return;
		}
		const mostly = trial ? [] : outcomes.suspectsMostly(limits().breakerFailureShare);
		const met = failures.length >= enough ? failures : mostly;
		const accounts = new Set(trial ? [accountId] : met.map((failure) => failure.accountId));
		if (accounts.size === 0 || (accounts.size === 1 && rests(accountId))) return;
		if (accounts.size > 1 && outcomes.othersAnswered(met)) return;
		const all = new Set([...accounts, ...(isCooling() ? resting : [])]);
		if (all.size > 1 && (!healthy() || all.size >= FAILING_ACCOUNTS_MAX)) open();
		else rest(accounts);
	}

	return {
		/** State for an account without failures. */
		state(): BreakerState {
			settle();
			return states.now();
		},
		/** State for display. Also "open" during an early trial, and if every account that called recently failed. */
		shown(): BreakerState {
			settle();
			return states.is("half_open") && isCooling() ? "open" : states.now();
		},
		/** True if a call of this account may start now. */
		allows(accountId: string): boolean {
			settle();
			if (states.is("closed")) return !rests(accountId);
			return states.is("half_open") && clock.monotonicMs() >= triedUntilMs && !rests(accountId);
		},
		/** Registers a call. `createLastResort` may start a call although `allows` returns false. */
		begin(accountId: string): BreakerCall {
			// A call of last resort starts the trial before the cool-down ends.
			if (states.is("open")) change("half_open");
			if (states.is("half_open") && !rests(accountId)) triedUntilMs = clock.monotonicMs() + TRIAL_ALONE_MS;
			return { accountId, generation };
		},
		end(call: BreakerCall, outcome: CallOutcome) {
			if (call.generation !== generation) return;
			if (outcome === "ok") answered(call);
			else if (outcome === "neutral") triedUntilMs = 0;
			else if (!states.is("open")) noteFailure(call, outcome);
		},
		/** Judges a suspect failure: `failed` if another replica answered the request, `neutral` if others failed too. */
		judge(call: BreakerCall, verdict: "failed" | "neutral") {
			const { failure } = call;
			if (failure === undefined || call.generation !== generation) return;
			failure.verdict = verdict;
			failure.judged = true;
			if (verdict === "failed") return weigh(call.accountId);
			if (outcomes.failuresInRow().length < limits().breakerFailuresInRow) resting.delete(call.accountId);
		},
		/** Monotonic time of another call's last failure after the replica's last answer; undefined without one. */
		otherFailureAtMs: (call: BreakerCall): number | undefined => outcomes.lastOther(call.failure)?.atMs,
		/** Milliseconds until calls of this account are allowed; 0 if they are allowed now. */
		coolMsLeft(accountId: string): number {
			const left = Math.max(0, coolUntilMs - clock.monotonicMs());
			return states.is("open") || resting.has(accountId) ? left : 0;
		},
	};
}
