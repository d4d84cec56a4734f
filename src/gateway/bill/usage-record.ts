import type { Basis } from "../../ledger/event.ts";
import type { JsonUsd } from "../../money/json-usd.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import type { Bill } from "./bill.ts";

/** The authoritative usage of an answer, in OpenAI's format plus the charge. */
export interface UsageRecord {
	readonly prompt_tokens: number;
	readonly completion_tokens: number;
	readonly total_tokens: number;
	readonly prompt_tokens_details: { readonly cached_tokens: number };
	readonly completion_tokens_details: { readonly reasoning_tokens: number };
	/** The charged amount, as a number like aggregators send it. */
	readonly cost: JsonUsd;
	/** Whether the counts are the server's own or an estimate. */
	readonly basis: Basis;
}

export function usageRecord(bill: Bill): UsageRecord {
	return {
		prompt_tokens: bill.promptTokens,
		completion_tokens: bill.completionTokens,
		total_tokens: bill.promptTokens + bill.completionTokens,
		prompt_tokens_details: { cached_tokens: bill.cachedTokens },
		completion_tokens_details: { reasoning_tokens: bill.reasoningTokens },
		cost: jsonUsd(bill.cost),
		basis: bill.basis,
	};
}
