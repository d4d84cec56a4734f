import type { Endpoint } from "../catalog/request-fields.ts";
import type { NanoUsd } from "../money/nano-usd.ts";

export type Basis = "exact" | "estimated" | "recovered";
export type Ending =
	| "finished"
	| "upstream_failed"
	| "upstream_died"
	| "upstream_silent"
	| "client_left"
	| "shutdown"
	| "crashed";

/** What is known of a request when it is admitted. The short names are those of the journal and of the SQL functions. */
export interface AdmittedEvent {
	/** The request's UUID. */
	readonly id: string;
	readonly account: string;
	readonly key: string;
	readonly model: string;
	/** The rate card that it is priced with, whatever changes later. */
	readonly card: string;
	readonly endpoint: Endpoint;
	readonly streamed: boolean;
	readonly reserved: NanoUsd;
	/** Budgets that it draws on beside its account's and its key's: the period of a cap. Absent: none. */
	readonly budgets?: readonly string[] | undefined;
	/** The managed batch that it is a line of. */
	readonly batch?: string | undefined;
	/** Wall time of the admission, milliseconds. */
	readonly at: number;
}

/** How a request ended and what it cost: one row of `usage_event`. */
export interface SettledEvent extends AdmittedEvent {
	readonly charged: NanoUsd;
	/** The part of the actual cost that is the operator's write-off. */
	readonly off: NanoUsd;
	readonly basis: Basis;
	readonly ending: Ending;
	/** HTTP status. */
	readonly status: number;
	readonly promptTokens: number;
	readonly cachedTokens: number;
	readonly completionTokens: number;
	readonly reasoningTokens: number;
	/** Audio seconds, images or searches. */
	readonly units: number;
	readonly replica: string | null;
	/** Milliseconds from admission to the first token, null if there was none. */
	readonly first: number | null;
	/** Milliseconds from admission to the end. */
	readonly ms: number;
}
