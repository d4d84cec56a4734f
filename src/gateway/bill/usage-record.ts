import type { JsonUsd } from "../../money/json-usd.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import type { TokenUsage } from "../../upstream/usage.ts";

/** The authoritative usage record of an answer, in OpenAI's shape with the charge beside it. */
export interface UsageRecord {
	readonly prompt_tokens: number;
	readonly completion_tokens: number;
	readonly total_tokens: number;
	readonly prompt_tokens_details: { readonly cached_tokens: number };
	readonly completion_tokens_details: { readonly reasoning_tokens: number };
	/** As charged. A number, the form in which aggregators give it. */
	readonly cost: JsonUsd;
}

export function usageRecord(usage: TokenUsage, cost: NanoUsd): UsageRecord {
	return {
		prompt_tokens: usage.promptTokens,
		completion_tokens: usage.completionTokens,
		total_tokens: usage.promptTokens + usage.completionTokens,
		prompt_tokens_details: { cached_tokens: usage.cachedTokens },
		completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
		cost: jsonUsd(cost),
	};
}
