import type { AdmissionRequest } from "../../admission/admission.ts";
import { priceOfTokens } from "../../admission/price.ts";
import type { PromptMeasure } from "../../admission/prompt-bound.ts";
import { completionTokensEstimate, promptTokensEstimate } from "../../admission/prompt-bound.ts";
import type { Basis, Ending, SettledEvent, UsageCounts } from "../../ledger/event.ts";
import { NO_COUNTS, type Outcome } from "../../ledger/outcome.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { ZERO_USD } from "../../money/nano-usd.ts";
import type { ReportedUsage } from "../../upstream/usage.ts";
import { CLIENT_LEFT_STATUS } from "../error-body.ts";

/** What a server's finished streams can raise an estimate by, at most, over what it is without them. */
const LEARNT_FACTOR_MAX = 2;

/** What a request used, by whose count, and what it costs. */
export interface Bill extends UsageCounts {
	readonly cost: NanoUsd;
	readonly basis: Basis;
}

/** How much was generated, as far as it can be seen without a count of tokens. */
export interface OutputSize {
	readonly bytes: number;
	/** Events of a stream that carried output; 0 if it came whole. */
	readonly chunks: number;
	/** What finished streams of the same replica say that it is worth; undefined if they do not. */
	readonly tokensLikely?: number | undefined;
}

/** Nothing reached the client and nothing is charged. */
export const FREE_BILL: Bill = { ...NO_COUNTS, cost: ZERO_USD, basis: "exact" };

/**
 * The upstream's own count of each half where there is one; else an estimate by size, marked as such, and never above what was
 * reserved. A server may overlook its limits, and what it then generated is counted; but nobody reads or writes more than
 * fits into a context, and a count beyond that is cut to it and marked as an estimate too. The size as in `OutputSize`.
 */
export function billOf(
	{ model, upperBound, choices }: Pick<AdmissionRequest, "model" | "upperBound" | "choices">,
	measure: PromptMeasure,
	reported: ReportedUsage | undefined,
	bytes: number,
	chunks: number,
	tokensLikely?: number,
): Bill {
	const prompt = reported?.promptTokens ?? promptTokensEstimate(measure, model);
	const completion =
		reported?.completionTokens ?? Math.min(likelyTokens(bytes, chunks, tokensLikely), upperBound.completionTokens);
	const promptTokens = Math.min(prompt, model.contextLength * (measure.prompts ?? 1));
	const completionTokens = Math.min(completion, model.contextLength * choices);
	const cachedTokens = Math.min(reported?.cachedTokens ?? 0, promptTokens);
	const exact = reported?.promptTokens === promptTokens && reported.completionTokens === completionTokens;
	return {
		promptTokens,
		completionTokens,
		cachedTokens,
		reasoningTokens: Math.min(reported?.reasoningTokens ?? 0, completionTokens),
		units: 0,
		cost: priceOfTokens(model.rateCard, promptTokens, cachedTokens, completionTokens),
		basis: exact ? "exact" : "estimated",
	};
}

/**
 * By what finished streams of the same replica say, if they do. Whatever they say, nobody pays for more than a token a
 * byte, nor for more than twice what the size alone would be taken for.
 */
function likelyTokens(bytes: number, chunks: number, tokensLikely: number | undefined): number {
	const bySize = completionTokensEstimate(bytes, chunks);
	return tokensLikely === undefined ? bySize : Math.min(tokensLikely, LEARNT_FACTOR_MAX * bySize, bytes);
}

/** Columns of counts are 32 bits wide: an upstream that lies beyond that must not stop the writing of everybody's. */
const COUNT_MAX = 2 ** 31 - 1;

export interface OutcomeFacts {
	readonly ending: Ending;
	readonly status: number;
	readonly replica: string | undefined;
	/** Milliseconds from admission. */
	readonly firstMs: number | null;
	readonly totalMs: number;
}

export function outcomeOf(bill: Bill, facts: OutcomeFacts): Outcome {
	return {
		costNanoUsd: bill.cost,
		basis: bill.basis,
		ending: facts.ending,
		status: facts.ending === "client_left" ? CLIENT_LEFT_STATUS : facts.status,
		promptTokens: Math.min(bill.promptTokens, COUNT_MAX),
		cachedTokens: Math.min(bill.cachedTokens, COUNT_MAX),
		completionTokens: Math.min(bill.completionTokens, COUNT_MAX),
		reasoningTokens: Math.min(bill.reasoningTokens, COUNT_MAX),
		units: Math.min(bill.units, COUNT_MAX),
		replica: facts.replica ?? null,
		first: facts.firstMs === null ? null : wholeMicros(facts.firstMs),
		ms: wholeMicros(facts.totalMs),
	};
}

/** Of milliseconds, to three decimals: what the clock says beyond is as long as all the rest of a number, and nobody reads it. */
function wholeMicros(ms: number): number {
	return Math.round(ms * 1_000) / 1_000;
}

/** The bill as it stands in the books: what a client is told is what it was charged. */
export function settledBill(event: SettledEvent): Bill {
	return {
		promptTokens: event.promptTokens,
		completionTokens: event.completionTokens,
		cachedTokens: event.cachedTokens,
		reasoningTokens: event.reasoningTokens,
		cost: event.charged,
		basis: event.basis,
		units: event.units,
	};
}
