import { newRequestId } from "../base/id.ts";
import type { LogFields } from "../base/log.ts";
import type { SettledEvent } from "../ledger/event.ts";

/** What an operator who looks into one customer's trouble wants of each request. Neither prompt nor answer is in it. */
export function settledFields(event: SettledEvent): LogFields {
	const { account, key, model, endpoint, ending, status, promptTokens, completionTokens, ms, replica } = event;
	return {
		request: newRequestId(event.id).requestId,
		account,
		key,
		model,
		endpoint,
		ending,
		status,
		promptTokens,
		completionTokens,
		chargedNanoUsd: event.charged,
		firstMs: event.first,
		ms,
		replica,
	};
}
