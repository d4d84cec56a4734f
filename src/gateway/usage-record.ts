import type { NanoUsd } from "../money/nano-usd.ts";
import { NANO_PER_USD } from "../money/nano-usd.ts";
import type { TokenUsage } from "../upstream/reply.ts";

/** The authoritative usage record of an answer, in OpenAI's shape with the charge beside it. */
export interface UsageRecord {
	readonly prompt_tokens: number;
	readonly completion_tokens: number;
	readonly total_tokens: number;
	readonly prompt_tokens_details: { readonly cached_tokens: number };
	readonly completion_tokens_details: { readonly reasoning_tokens: number };
	/** US dollars, as charged. A JSON number, the form in which aggregators give it; the exact amount is in /v1/usage. */
	readonly cost: number;
}

export function usageRecord(usage: TokenUsage, cost: NanoUsd): UsageRecord {
	return {
		prompt_tokens: usage.promptTokens,
		completion_tokens: usage.completionTokens,
		total_tokens: usage.promptTokens + usage.completionTokens,
		prompt_tokens_details: { cached_tokens: usage.cachedTokens },
		completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
		cost: cost / NANO_PER_USD,
	};
}
