import { NO_QUANTITIES, priceWithin } from "../admission/price.ts";
import type { PromptMeasure } from "../admission/prompt-bound.ts";
import { outputTokensEstimate, promptTokensEstimate } from "../admission/prompt-bound.ts";
import type { Model } from "../catalog/model.ts";
import type { Basis, Ending } from "../ledger/event.ts";
import type { Outcome } from "../ledger/ledger.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { ZERO_USD } from "../money/nano-usd.ts";
import type { TokenUsage } from "../upstream/reply.ts";

/** What a chat used, by whose count, and what it costs. */
export interface Bill {
	readonly usage: TokenUsage;
	readonly cost: NanoUsd;
	readonly basis: Basis;
}

const NO_USAGE: TokenUsage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };

/** Nothing reached the client and nothing is charged. */
export const FREE_BILL: Bill = { usage: NO_USAGE, cost: ZERO_USD, basis: "exact" };

/** The upstream's own count where there is one; else an estimate by size, marked as such. */
export function billOf(model: Model, measure: PromptMeasure, usage: TokenUsage | undefined, outputBytes: number): Bill {
	const counted = usage ?? {
		...NO_USAGE,
		promptTokens: promptTokensEstimate(measure, model),
		completionTokens: outputTokensEstimate(outputBytes),
	};
	return { usage: counted, cost: costOf(model, counted), basis: usage ? "exact" : "estimated" };
}

export function costOf(model: Model, usage: TokenUsage): NanoUsd {
	return priceWithin(model.rateCard, {
		...NO_QUANTITIES,
		prompt: usage.promptTokens,
		cached: Math.min(usage.cachedTokens, usage.promptTokens),
		completion: usage.completionTokens,
		requests: 1,
	});
}

export interface OutcomeFacts {
	readonly ending: Ending;
	readonly status: number;
	readonly replica: string | undefined;
	/** Milliseconds from admission. */
	readonly firstMs: number | null;
	readonly totalMs: number;
}

export function outcomeOf(bill: Bill, facts: OutcomeFacts): Outcome {
	const { usage } = bill;
	return {
		costNanoUsd: bill.cost,
		basis: bill.basis,
		ending: facts.ending,
		status: facts.status,
		prompt: usage.promptTokens,
		cached: usage.cachedTokens,
		completion: usage.completionTokens,
		reasoning: usage.reasoningTokens,
		units: 0,
		replica: facts.replica ?? null,
		first: facts.firstMs,
		ms: facts.totalMs,
	};
}
