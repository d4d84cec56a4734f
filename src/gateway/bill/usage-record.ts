import type { Basis } from "../../ledger/event.ts";
import type { JsonUsd } from "../../money/json-usd.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import type { Bill } from "./bill.ts";

/** The authoritative usage record of an answer, in OpenAI's shape with the charge beside it. */
export interface UsageRecord {
	readonly prompt_tokens: number;
	readonly completion_tokens: number;
	readonly total_tokens: number;
	readonly prompt_tokens_details: { readonly cached_tokens: number };
	readonly completion_tokens_details: { readonly reasoning_tokens: number };
	/** As charged. A number, the form in which aggregators give it. */
	readonly cost: JsonUsd;
	/** Whose count it is: the server's own, or an estimate where it gave none. */
	readonly basis: Basis;
}

export function usageRecord({ usage, cost, basis }: Pick<Bill, "usage" | "cost" | "basis">): UsageRecord {
	return {
		prompt_tokens: usage.promptTokens,
		completion_tokens: usage.completionTokens,
		total_tokens: usage.promptTokens + usage.completionTokens,
		prompt_tokens_details: { cached_tokens: usage.cachedTokens },
		completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
		cost: jsonUsd(cost),
		basis,
	};
}
