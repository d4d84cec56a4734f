import type { NanoUsd } from "../money/nano-usd.ts";
import { nanoUsd } from "../money/nano-usd.ts";
import type { AdmittedEvent, SettledEvent } from "./event.ts";

/** How a request ended. `costNanoUsd` is what it really cost; what credit does not cover is written off. */
export type Outcome = Omit<SettledEvent, keyof AdmittedEvent | "charged" | "off"> & { readonly costNanoUsd: NanoUsd };

/** In one literal: an object that is spread grows step by step, which is three times the garbage. */
export function settledEvent(
	admitted: AdmittedEvent,
	outcome: Outcome,
	reserved: NanoUsd,
	charged: NanoUsd,
	off: NanoUsd,
): SettledEvent {
	return {
		id: admitted.id,
		account: admitted.account,
		key: admitted.key,
		model: admitted.model,
		card: admitted.card,
		endpoint: admitted.endpoint,
		streamed: admitted.streamed,
		reserved,
		budgets: admitted.budgets,
		batch: admitted.batch,
		at: admitted.at,
		charged,
		off,
		basis: outcome.basis,
		ending: outcome.ending,
		status: outcome.status,
		promptTokens: outcome.promptTokens,
		cachedTokens: outcome.cachedTokens,
		completionTokens: outcome.completionTokens,
		reasoningTokens: outcome.reasoningTokens,
		units: outcome.units,
		replica: outcome.replica,
		first: outcome.first,
		ms: outcome.ms,
	};
}

/** How far a running request may have got: the cost of all that was delivered is between the two amounts. */
export interface Progress {
	/** What has been delivered so far costs this. */
	readonly delivered: NanoUsd;
	/** What will be delivered until the next record costs this at most. */
	readonly bound: NanoUsd;
	/** Tokens in `delivered`. */
	readonly promptTokens: number;
	readonly completionTokens: number;
}

/** For callers that settle nothing: an outcome that costs nothing. */
export const NOTHING_USED = {
	promptTokens: 0,
	cachedTokens: 0,
	completionTokens: 0,
	reasoningTokens: 0,
	units: 0,
	costNanoUsd: nanoUsd(0),
} as const;
