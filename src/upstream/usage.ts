/** Token counts out of upstream records that may be partial, repeated, per choice or wrong. */
import type { TokenUsage } from "./reply.ts";
import { asCount, asObject } from "./wire-value.ts";

/**
 * How a server family reports usage while it streams.
 * - `last`: each record is the whole; the last one counts.
 * - `per_choice`: a record on an event with a choice is cumulative for that choice; the one without choices is the whole.
 * - `sum`: each choice ends with its own record without choices; the prompt stands in every one of them.
 */
export type UsageStyle = "last" | "per_choice" | "sum";

/** Follows the usage records of one stream. */
export interface UsageTally {
	/**
	 * `record` as it stood on an event whose only choice is `choiceIndex`, undefined if it had none or several.
	 * `allFinished`: every choice seen so far has its finish reason, this event's included.
	 */
	note(record: unknown, choiceIndex: number | undefined, hasChoices: boolean, allFinished: boolean): void;
	current(): TokenUsage | undefined;
	/** Whether `current` is the upstream's own final count. */
	isFinal(): boolean;
}

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

export function createUsageTally(style: UsageStyle): UsageTally {
	let whole: TokenUsage | undefined;
	let final = false;
	let summing = false;
	const ofChoice: (TokenUsage | undefined)[] = [];

	return {
		note(record, choiceIndex, hasChoices, allFinished) {
			const usage = readUsage(record);
			if (usage === undefined) return;
			if (style === "sum" && !hasChoices) {
				whole = summing ? joined([whole, usage]) : usage;
				summing = true;
				final = true;
			} else if (style === "per_choice" && choiceIndex !== undefined) {
				if (final) return;
				ofChoice[choiceIndex] = usage;
				whole = undefined;
			} else {
				whole = usage;
				final = !hasChoices || allFinished;
			}
		},
		current() {
			whole ??= ofChoice.length === 1 ? ofChoice[0] : joined(ofChoice);
			return whole;
		},
		isFinal: () => final,
	};
}

/** Usage of several choices of one prompt: the prompt counts once, what was generated adds up. */
function joined(parts: readonly (TokenUsage | undefined)[]): TokenUsage | undefined {
	let sum: TokenUsage | undefined;
	for (const part of parts) {
		if (part === undefined) continue;
		sum =
			sum === undefined
				? part
				: {
						promptTokens: Math.max(sum.promptTokens, part.promptTokens),
						completionTokens: sum.completionTokens + part.completionTokens,
						cachedTokens: Math.max(sum.cachedTokens, part.cachedTokens),
						reasoningTokens: sum.reasoningTokens + part.reasoningTokens,
					};
	}
	return sum;
}
