import type { Clock } from "../../base/clock.ts";

/**
 * What the result of a call shows about the replica:
 * - `failed`: certainly the replica's fault, such as a refused connection.
 * - `suspect`: the replica's fault or the request's.
 * - `neutral`: nothing, because the client disconnected or its request was refused.
 */
export type CallOutcome = "ok" | "failed" | "suspect" | "neutral";

export interface RecordedOutcome {
	readonly accountId: string;
	readonly atMs: number;
	/** Changes when a suspect failure is judged. */
	verdict: CallOutcome;
	/** True once it is known how another replica handled the same request. */
	judged: boolean;
}

/** Number of latest calls from which the share of failures is computed. */
const WINDOW_CALLS = 20;
/** For this long, an answer to other accounts counts as evidence that the replica works. */
const ANSWER_SPEAKS_MS = 10_000;
/** Accounts whose last answer is remembered; enough to include accounts other than a few failing ones. */
const ANSWERED_ACCOUNTS_MAX = 8;

export function createCallOutcomes(clock: Clock, healthy: () => boolean) {
	/** Failures of any kind since the last answer; the oldest are dropped. */
	let inRow: RecordedOutcome[] = [];
	let window: RecordedOutcome[] = [];
	let next = 0;
	/** Last answer per account. Separate from `window`, which failures can fill. An array: a Map leaves garbage. */
	let answers: { accountId: string; atMs: number }[] = [];

	function keep(accountId: string, verdict: CallOutcome): RecordedOutcome {
		const outcome: RecordedOutcome = { accountId, atMs: clock.monotonicMs(), verdict, judged: false };
		window[next] = outcome;
		next = (next + 1) % WINDOW_CALLS;
		return outcome;
	}

	/** True if the health check succeeds and an account without failures was answered recently. */
	function othersAnswered(failures: readonly RecordedOutcome[]): boolean {
		if (!healthy()) return false;
		const failing = new Set(failures.map(({ accountId }) => accountId));
		const sinceMs = clock.monotonicMs() - ANSWER_SPEAKS_MS;
		return answers.some(({ accountId, atMs }) => atMs >= sinceMs && !failing.has(accountId));
	}

	function noteAnswer(accountId: string, atMs: number): void {
		let last = answers.find((one) => one.accountId === accountId);
		if (last === undefined && answers.length < ANSWERED_ACCOUNTS_MAX) {
			answers.push({ accountId, atMs });
			return;
		}
		last ??= answers.reduce((oldest, one) => (one.atMs < oldest.atMs ? one : oldest));
		last.accountId = accountId;
		last.atMs = atMs;
	}

	function failuresFrom(share: number): readonly RecordedOutcome[] {
		if (window.length < WINDOW_CALLS) return [];
		const failures = window.filter(isFailure);
		return failures.length < WINDOW_CALLS * share ? [] : failures;
	}

	return {
		clear(): void {
			inRow = [];
			window = [];
			next = 0;
			answers = [];
		},
		answered(accountId: string): void {
			noteAnswer(accountId, keep(accountId, "ok").atMs);
			if (inRow.length > 0) inRow = [];
		},
		/** Records a failure; keeps at most `inRowMax` consecutive failures. */
		failed(accountId: string, verdict: "failed" | "suspect", inRowMax: number): RecordedOutcome {
			const failure = keep(accountId, verdict);
			inRow.push(failure);
			if (inRow.length > inRowMax) inRow.shift();
			return failure;
		},
		failuresInRow: (): RecordedOutcome[] => inRow.filter(isFailure),
		/** Failures that are certainly the replica's own, if they reach `share` of a full window; otherwise none. */
		provedMostly(share: number): readonly RecordedOutcome[] {
			const proved = failuresFrom(share).filter(isOwnFailure);
			return proved.length < WINDOW_CALLS * share ? [] : proved;
		},
		/** All failures, if they reach `share` of a full window and belong to several accounts; otherwise none. */
		suspectsMostly(share: number): readonly RecordedOutcome[] {
			const failures = failuresFrom(share);
			return new Set(failures.map(({ accountId }) => accountId)).size > 1 ? failures : [];
		},
		othersAnswered,
		lastOther: (failure: RecordedOutcome | undefined): RecordedOutcome | undefined =>
			inRow.findLast((one) => one !== failure),
	};
}

export const isOwnFailure = ({ verdict }: RecordedOutcome): boolean => verdict === "failed";

function isFailure({ verdict }: RecordedOutcome): boolean {
	return verdict === "failed" || verdict === "suspect";
}
