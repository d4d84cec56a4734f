import type { Clock } from "../../base/clock.ts";
import { createStates } from "../../base/states.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { CallOutcome, Outcome } from "./call-outcomes.ts";
import { createCallOutcomes, isProved } from "./call-outcomes.ts";

export type BreakerState = "closed" | "open" | "half_open";

/** One call, for its outcome; of no other use. */
export interface BreakerCall {
	readonly accountId: string;
	/** A call from before a change of state does not count. */
	readonly generation: number;
	/** Set by its failure. */
	failure?: Outcome;
}

/**
 * Keeps calls away from a replica that fails. Opens after some failures in a row or a share of the last 20 calls; after
 * the cool-down one call is let through, whose outcome closes it or opens it for twice as long, up to a maximum. If that one
 * takes its time, another is let through beside it: a long answer, or silence that only its own deadline ends, keeps a model from nobody.
 *
 * A failure may be the request's, and nobody may take a model away from others by asking for what it cannot answer. So
 * what only one account meets keeps only that account away. Failures of several keep nobody away while the health check is
 * fine and others are answered; while it is fine and nobody else asked, they keep those away who met them, and who comes next is
 * a trial, until there are too many of them for a plot. A failure that is proved to be the replica's own counts whoever met it; what another replica answered proves it if
 * nobody else was answered here, or if it was of several.
 */
export interface Breaker {
	/** As it is for an account that has met no failure. */
	state(): BreakerState;
	/** As it is for all that have asked of late: open too where each of them failed, and nobody was answered since; or where it is tried out before its time. */
	shown(): BreakerState;
	/** Whether it has been open since it was last closed: what comes back from there is cold. */
	wasOpen(): boolean;
	/** Whether a call of this account may begin now. */
	allows(accountId: string): boolean;
	/** A call that `allows` keeps away begins too where its replica is a last resort (`LastResort`). */
	begin(accountId: string): BreakerCall;
	end(call: BreakerCall, outcome: CallOutcome): void;
	/** What was a suspect is known now: `failed` if the same request was answered elsewhere, `neutral` if it failed there. */
	judge(call: BreakerCall, verdict: "failed" | "neutral"): void;
	/** Monotonic time of the last other failure since the replica last answered; undefined if there was none. */
	otherFailureAtMs(call: BreakerCall): number | undefined;
	/** Milliseconds until calls of this account are let through again; 0 if they are. */
	coolMsLeft(accountId: string): number;
}

type BreakerLimits = Pick<
	ServiceLimits,
	"breakerFailuresInRow" | "breakerFailureShare" | "breakerCoolMs" | "breakerCoolMsMax"
>;

/** So many accounts that fail, with nobody answered, are no plot: each has paid in. Fewer are known by name. */
const FAILING_ACCOUNTS_MAX = 64;
/** So many that fail where another replica answers them prove it, though others are answered here. */
const PROVING_ACCOUNTS = 5;
/** How long a trial is the only one. Who waits for a place waits for twice as long, if nobody has set that otherwise. */
const TRIAL_ALONE_MS = 5_000;

const TRANSITIONS: Readonly<Record<BreakerState, readonly BreakerState[]>> = {
	closed: ["open", "half_open"],
	open: ["half_open"],
	half_open: ["open", "closed"],
};

export function createBreaker(clock: Clock, limits: () => BreakerLimits, healthy: () => boolean): Breaker {
	const outcomes = createCallOutcomes(clock, healthy);
	const states = createStates(TRANSITIONS, "closed");
	/** Grows with each change of state. */
	let generation = 0;
	let coolMs = limits().breakerCoolMs;
	/** Everybody is kept away until then (`open`), or the accounts that rest are. */
	let coolUntilMs = 0;
	/** The accounts that are kept away, because nobody else met a failure; fewer than FAILING_ACCOUNTS_MAX. */
	const resting = new Set<string>();
	/** Nobody else is tried until then. */
	let triedUntilMs = 0;
	let wasOpen = false;

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
		wasOpen = true;
		cool();
	}

	function settle(): void {
		if (states.is("open") && !isCooling()) change("half_open");
	}

	function rests(accountId: string): boolean {
		return resting.has(accountId) && isCooling();
	}

	/** While nothing proves that it is the replica: who else comes is asked of it, one at a time. */
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
			wasOpen = false;
			coolMs = limits().breakerCoolMs;
			// It speaks for the replica as any other does, or the same failures had the next one be a trial at once.
			outcomes.answered(call.accountId);
		} else if (states.is("closed")) {
			outcomes.answered(call.accountId);
			if (resting.size === 0) return;
			resting.clear();
			coolMs = limits().breakerCoolMs;
		}
	}

	/** Whether it may be the requests all the same: of two servers that are well one may fail on what the other answers. */
	function isOfFew(proved: readonly Outcome[]): boolean {
		if (proved.some(({ judged }) => !judged)) return false;
		const accounts = new Set(proved.map(({ accountId }) => accountId));
		if (isCooling()) for (const accountId of resting) accounts.add(accountId);
		return accounts.size < PROVING_ACCOUNTS && (states.is("half_open") || outcomes.othersAnswered(proved));
	}

	function noteFailure(call: BreakerCall, verdict: "failed" | "suspect"): void {
		// Room for two accounts' at least, and for some that turned out to be no fault of the replica's.
		call.failure = outcomes.failed(call.accountId, verdict, 2 * limits().breakerFailuresInRow);
		triedUntilMs = 0;
		weigh(call.accountId);
	}

	/** Whether what is known by now keeps somebody away. */
	function weigh(accountId: string): void {
		const trial = states.is("half_open");
		const enough = trial ? 1 : limits().breakerFailuresInRow;
		const failures = outcomes.failuresInRow();
		const provedInRow = failures.filter(isProved);
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
		state() {
			settle();
			return states.now();
		},
		shown() {
			settle();
			return states.is("half_open") && isCooling() ? "open" : states.now();
		},
		wasOpen: () => wasOpen,
		allows(accountId) {
			settle();
			if (states.is("closed")) return !rests(accountId);
			return states.is("half_open") && clock.monotonicMs() >= triedUntilMs && !rests(accountId);
		},
		begin(accountId) {
			// There is nothing else to ask: it is tried out before its time.
			if (states.is("open")) change("half_open");
			if (states.is("half_open") && !rests(accountId)) triedUntilMs = clock.monotonicMs() + TRIAL_ALONE_MS;
			return { accountId, generation };
		},
		end(call, outcome) {
			if (call.generation !== generation) return;
			if (outcome === "ok") answered(call);
			else if (outcome === "neutral") triedUntilMs = 0;
			else if (!states.is("open")) noteFailure(call, outcome);
		},
		judge(call, verdict) {
			const { failure } = call;
			if (failure === undefined || call.generation !== generation) return;
			failure.verdict = verdict;
			failure.judged = true;
			if (verdict === "failed") return weigh(call.accountId);
			if (outcomes.failuresInRow().length < limits().breakerFailuresInRow) resting.delete(call.accountId);
		},
		otherFailureAtMs: (call) => outcomes.lastOther(call.failure)?.atMs,
		coolMsLeft(accountId) {
			const left = Math.max(0, coolUntilMs - clock.monotonicMs());
			return states.is("open") || resting.has(accountId) ? left : 0;
		},
	};
}
