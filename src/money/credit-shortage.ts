import type { NanoUsd } from "./nano-usd.ts";

/** Why an account's credit, or the cap of a key or project, did not suffice for a request. */
export interface CreditShortage {
	/** Part of the credit or cap that is neither spent nor held. */
	readonly availableNanoUsd: NanoUsd;
	/** Part of the credit or cap that running requests hold. */
	readonly heldNanoUsd: NanoUsd;
	/** Upper bound of the request's cost. */
	readonly requiredNanoUsd: NanoUsd;
	/** Largest `max_tokens` for which the available amount would suffice; null if there is none. */
	readonly affordableMaxTokens: number | null;
}
