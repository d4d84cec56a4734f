import { jsonUsd } from "../../money/json-usd.ts";
import type { Bill } from "./bill.ts";

export type UsageRecord = ReturnType<typeof usageRecord>;

/** The authoritative usage of an answer, in OpenAI's format plus the charge. */
export function usageRecord(bill: Bill) {
	return {
		prompt_tokens: bill.promptTokens,
		completion_tokens: bill.completionTokens,
		total_tokens: bill.promptTokens + bill.completionTokens,
		prompt_tokens_details: { cached_tokens: bill.cachedTokens },
		completion_tokens_details: { reasoning_tokens: bill.reasoningTokens },
		/** The charged amount, as a number like aggregators send it. */
		cost: jsonUsd(bill.cost),
		/** Whether the counts are the server's own or an estimate. */
		basis: bill.basis,
	};
}
