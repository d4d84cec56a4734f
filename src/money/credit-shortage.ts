import type { NanoUsd } from "./nano-usd.ts";

/** Why an account's credit, or a key's cap, did not suffice for a request. */
export interface CreditShortage {
	/** Neither spent nor held. */
	readonly availableNanoUsd: NanoUsd;
	/** By requests that run. */
	readonly heldNanoUsd: NanoUsd;
	/** The most that the request could cost. */
	readonly requiredNanoUsd: NanoUsd;
	/** The `max_tokens` that would have fitted; null if none would. */
	readonly affordableMaxTokens: number | null;
}
