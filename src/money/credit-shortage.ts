import type { NanoUsd } from "./nano-usd.ts";

/** Why the credit of an account, or the cap of a key or project, was insufficient for a request. */
export interface CreditShortage {
	/** Neither spent nor held. */
	readonly availableNanoUsd: NanoUsd;
	/** Held by running requests. */
	readonly heldNanoUsd: NanoUsd;
	/** Upper bound of the request's cost. */
	readonly requiredNanoUsd: NanoUsd;
	/** Largest `max_tokens` for which the credit would suffice; null if there is none. */
	readonly affordableMaxTokens: number | null;
}
