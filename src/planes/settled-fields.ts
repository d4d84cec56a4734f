import { newRequestId } from "../base/id.ts";
import type { LogFields } from "../base/log.ts";
import type { SettledEvent } from "../ledger/event.ts";

/** Log fields for an operator who investigates one customer's problem. They hold no prompt or answer. */
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
