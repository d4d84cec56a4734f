import type { Clock } from "../../base/clock.ts";

/**
 * How a call went, as far as it speaks of the replica.
 * - `failed`: the replica's own fault, whoever asked: nobody listens there.
 * - `suspect`: the replica's fault or the request's.
 * - `neutral`: says nothing of it: the client left, or its request was refused.
 */
export type CallOutcome = "ok" | "failed" | "suspect" | "neutral";

export interface Outcome {
	readonly accountId: string;
	readonly atMs: number;
	/** A suspect's changes once it is known whose fault it was. */
	verdict: CallOutcome;
	/** By what came of the same request elsewhere. */
	judged: boolean;
}

/** The share of failures is taken over this many calls, once there were so many. */
const WINDOW_CALLS = 20;
/** How long an answer to others speaks for a replica. */
const ANSWER_SPEAKS_MS = 10_000;
/** Of so many accounts the last answer is known: of others, too, where a few that fail are answered now and then. */
const ANSWERED_ACCOUNTS_MAX = 8;

/** What came of a replica's last calls. */
export function createCallOutcomes(clock: Clock, healthy: () => boolean) {
	/** What failed since the last answer, whoever turned out to be at fault; no more of it than matters. */
	let inRow: Outcome[] = [];
	/** Ring of the last outcomes. */
	let window: Outcome[] = [];
	let next = 0;
	/** The last answer to each account. Not in the window, which failures in plenty would fill; nor in a Map, of which each answer would leave the collector a table. */
	let answers: { accountId: string; atMs: number }[] = [];

	function keep(accountId: string, verdict: CallOutcome): Outcome {
		const outcome: Outcome = { accountId, atMs: clock.monotonicMs(), verdict, judged: false };
		window[next] = outcome;
		next = (next + 1) % WINDOW_CALLS;
		return outcome;
	}

	/** Whether the replica is well by its own word, and an account that met no failure was answered just now. */
	function othersAnswered(failures: readonly Outcome[]): boolean {
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

	function failuresFrom(share: number): readonly Outcome[] {
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
		/** At most `inRowMax` of those in a row are kept. */
		failed(accountId: string, verdict: "failed" | "suspect", inRowMax: number): Outcome {
			const failure = keep(accountId, verdict);
			inRow.push(failure);
			if (inRow.length > inRowMax) inRow.shift();
			return failure;
		},
		failuresInRow: (): Outcome[] => inRow.filter(isFailure),
		/** The failures by the replica's own fault, if they are so large a share of a full window. */
		provedMostly(share: number): readonly Outcome[] {
			const proved = failuresFrom(share).filter(isProved);
			return proved.length < WINDOW_CALLS * share ? [] : proved;
		},
		/** The failures of a full window, if they are so large a share of it and several accounts met them. */
		suspectsMostly(share: number): readonly Outcome[] {
			const failures = failuresFrom(share);
			return new Set(failures.map(({ accountId }) => accountId)).size > 1 ? failures : [];
		},
		othersAnswered,
		lastOther: (failure: Outcome | undefined): Outcome | undefined => inRow.findLast((one) => one !== failure),
	};
}

export function isProved({ verdict }: Outcome): boolean {
	return verdict === "failed";
}

function isFailure({ verdict }: Outcome): boolean {
	return verdict === "failed" || verdict === "suspect";
}
