/** Token counts out of upstream records that may be partial, repeated, per choice or wrong. */
import { asCount, asObject, type JsonObject } from "./wire-value.ts";

/** Token counts. `promptTokens` includes cached, `completionTokens` includes reasoning. */
export interface TokenUsage {
	readonly promptTokens: number;
	readonly completionTokens: number;
	readonly cachedTokens: number;
	readonly reasoningTokens: number;
}

/** Token counts as an upstream reported them; a half that it did not tell is undefined. */
export interface ReportedUsage extends Pick<TokenUsage, "cachedTokens" | "reasoningTokens"> {
	readonly promptTokens: number | undefined;
	readonly completionTokens: number | undefined;
}

/** A record from before the end says nothing of what was generated after it. */
export function withoutCompletion(usage: ReportedUsage | undefined): ReportedUsage | undefined {
	return usage === undefined ? undefined : { ...usage, completionTokens: undefined };
}

/** Nothing was cached and nothing reasoned. */
export function plainUsage(promptTokens: number, completionTokens: number): TokenUsage {
	return { promptTokens, completionTokens, cachedTokens: 0, reasoningTokens: 0 };
}

/** Usage of several choices, `n` a prompt: each prompt counts once, what was generated adds up. */
export function usageOfChoices(
	ofChoice: readonly (ReportedUsage | undefined)[],
	n = Number.POSITIVE_INFINITY,
): ReportedUsage | undefined {
	let before: ReportedUsage | undefined;
	let ofPrompt: ReportedUsage | undefined;
	let place = 0;
	for (let index = 0; index < ofChoice.length; index++) {
		const usage = ofChoice[index];
		if (usage === undefined) continue;
		if (ofPrompt !== undefined && Math.floor(index / n) === place) {
			ofPrompt = joined(ofPrompt, usage, true);
			continue;
		}
		before = withPrompt(before, ofPrompt);
		ofPrompt = usage;
		place = Math.floor(index / n);
	}
	return withPrompt(before, ofPrompt);
}

function withPrompt(before: ReportedUsage | undefined, next: ReportedUsage | undefined): ReportedUsage | undefined {
	return before === undefined || next === undefined ? (next ?? before) : joined(before, next, false);
}

function joined(one: ReportedUsage, other: ReportedUsage, ofSamePrompt: boolean): ReportedUsage {
	return {
		promptTokens: ofSamePrompt
			? Math.max(one.promptTokens ?? 0, other.promptTokens ?? 0) || undefined
			: sumOf(one.promptTokens, other.promptTokens),
		completionTokens: sumOf(one.completionTokens, other.completionTokens),
		cachedTokens: ofSamePrompt ? Math.max(one.cachedTokens, other.cachedTokens) : one.cachedTokens + other.cachedTokens,
		reasoningTokens: one.reasoningTokens + other.reasoningTokens,
	};
}

/** Unknown if one of them is. */
function sumOf(one: number | undefined, other: number | undefined): number | undefined {
	return one === undefined || other === undefined ? undefined : one + other;
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
 * A record as its server meant it; undefined if neither half says anything. Servers send zeros for a prompt that they
 * did not count. What the total has beyond both halves was generated all the same (reasoning that some count beside the
 * completion), unless it is what was cached, which some count beside the prompt. Cached tokens never pass the prompt's,
 * reasoning never the completion's.
 */
export function readUsage(value: unknown): ReportedUsage | undefined {
	const record = asObject(value);
	if (record === undefined) return undefined;
	const total = asCount(record.total_tokens, TOKENS_MAX) ?? 0;
	const cached = asCount(asObject(record.prompt_tokens_details)?.cached_tokens, TOKENS_MAX) ?? 0;
	const reasoning = reasoningOf(record);
	let prompt = asCount(record.prompt_tokens, TOKENS_MAX) || undefined;
	let completion = asCount(record.completion_tokens, TOKENS_MAX);
	// More reasoning than completion cannot be a part of it.
	if (completion !== undefined && reasoning > completion) completion = Math.min(completion + reasoning, TOKENS_MAX);
	if (prompt !== undefined) {
		const beyond = total - prompt - (completion ?? 0);
		if (beyond > 0 && beyond === cached) prompt = total - (completion ?? 0);
		else if (beyond > 0) completion = total - prompt;
	} else if (completion !== undefined && total > completion) prompt = total - completion;
	if (prompt === undefined && (completion === undefined || completion === 0)) return undefined;
	return {
		promptTokens: prompt,
		completionTokens: completion,
		cachedTokens: Math.min(cached, prompt ?? 0),
		reasoningTokens: Math.min(reasoning, completion ?? 0),
	};
}

function reasoningOf(record: JsonObject): number {
	const details = asObject(record.completion_tokens_details);
	// SGLang has it at the top.
	return asCount(details?.reasoning_tokens, TOKENS_MAX) ?? asCount(record.reasoning_tokens, TOKENS_MAX) ?? 0;
}
