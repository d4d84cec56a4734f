import type { NanoUsd } from "./nano-usd.ts";

/** Why an account's credit, or the cap of a key or project, did not suffice for a request. */
export interface CreditShortage {
	/** Available: neither spent nor held. */
	readonly availableNanoUsd: NanoUsd;
	/** Held by running requests. */
	readonly heldNanoUsd: NanoUsd;
	/** The most that the request could cost. */
	readonly requiredNanoUsd: NanoUsd;
	/** The largest `max_tokens` that would have fitted; null if none would. */
	readonly affordableMaxTokens: number | null;
}
