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

/** Most by which the learnt rate may raise an estimate above the one by size. */
const LEARNT_FACTOR_MAX = 2;

/** What a request used, the source of the counts, and its cost. */
export interface Bill extends UsageCounts {
	readonly cost: NanoUsd;
	readonly basis: Basis;
}

/** Generated output, as far as it is known without a token count. */
export interface OutputSize {
	readonly bytes: number;
	/** Events of a stream that carried output; 0 if the answer came unstreamed. */
	readonly chunks: number;
	/** Estimate from finished streams of the same replica; undefined if too few are known. */
	readonly tokensLikely?: number | undefined;
}

/** For requests that delivered nothing: no charge. */
export const FREE_BILL: Bill = { ...NO_COUNTS, cost: ZERO_USD, basis: "exact" };

/**
 * The upstream's count of each half. A missing half is estimated from the size of `OutputSize`, marked as an estimate
 * and never above the reservation. A server may overrun its limit, and its count then stands. But nothing exceeds the
 * context: a higher count is cut to it and marked as an estimate.
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
 * The estimate learnt from the replica's finished streams, if there is one. It never exceeds one token per byte, nor
 * twice the estimate by size.
 */
function likelyTokens(bytes: number, chunks: number, tokensLikely: number | undefined): number {
	const bySize = completionTokensEstimate(bytes, chunks);
	return tokensLikely === undefined ? bySize : Math.min(tokensLikely, LEARNT_FACTOR_MAX * bySize, bytes);
}

/** The columns of counts have 32 bits: a lying upstream must not block the writes of all requests. */
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

/** Rounds milliseconds to three decimals: the clock's further digits would only lengthen the record. */
function wholeMicros(ms: number): number {
	return Math.round(ms * 1_000) / 1_000;
}

/** The bill as settled in the books, so that the client sees the charged amount. */
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
