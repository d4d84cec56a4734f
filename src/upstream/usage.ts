/** Token counts out of upstream records that may be partial, repeated, per choice or wrong. */
import { asCount, asObject } from "./wire-value.ts";

/** Token counts as the upstream reported them. `promptTokens` includes cached, `completionTokens` includes reasoning. */
export interface TokenUsage {
	readonly promptTokens: number;
	readonly completionTokens: number;
	readonly cachedTokens: number;
	readonly reasoningTokens: number;
}

/**
 * How a server family reports usage while it streams.
 * - `last`: each record is the whole; the last one counts.
 * - `per_choice`: a record on an event with a choice is cumulative for that choice; the one without choices is the whole.
 * - `sum`: each choice ends with its own record without choices; the prompt stands in every one of them.
 */
export type UsageStyle = "last" | "per_choice" | "sum";

/** A count above this is a lie or a bug, not usage; the columns that keep it are 32 bits wide. */
const TOKENS_MAX = 2 ** 31 - 1;

/**
 * Undefined unless both counts are whole and there is at least one prompt token: every prompt has one, and several
 * servers send zeros for "not known". Cached tokens never pass the prompt's, reasoning never the completion's.
 */
export function readUsage(value: unknown): TokenUsage | undefined {
	const record = asObject(value);
	if (record === undefined) return undefined;
	const promptTokens = asCount(record.prompt_tokens, TOKENS_MAX);
	const completionTokens = asCount(record.completion_tokens, TOKENS_MAX);
	if (promptTokens === undefined || promptTokens === 0 || completionTokens === undefined) return undefined;
	const cached = asCount(asObject(record.prompt_tokens_details)?.cached_tokens, TOKENS_MAX) ?? 0;
	const reasoning =
		asCount(asObject(record.completion_tokens_details)?.reasoning_tokens, TOKENS_MAX) ??
		// SGLang has it at the top.
		asCount(record.reasoning_tokens, TOKENS_MAX) ??
		0;
	return {
		promptTokens,
		completionTokens,
		cachedTokens: Math.min(cached, promptTokens),
		reasoningTokens: Math.min(reasoning, completionTokens),
	};
}
