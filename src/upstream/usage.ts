/** Reads token counts from servers' usage records, which may be partial, repeated, per choice or wrong. */
import type { ReasoningCount } from "../catalog/model.ts";
import { asCount, asObject, asObjects, type JsonObject } from "./wire-value.ts";

/** Token counts. `promptTokens` includes cached tokens, `completionTokens` includes reasoning tokens. */
export interface TokenUsage {
	readonly promptTokens: number;
	readonly completionTokens: number;
	readonly cachedTokens: number;
	readonly reasoningTokens: number;
}

export interface ReportedUsage extends Pick<TokenUsage, "cachedTokens" | "reasoningTokens"> {
	readonly promptTokens: number | undefined;
	readonly completionTokens: number | undefined;
	/** True if the record contradicts itself or the server's `reasoning_tokens` setting. */
	readonly contradicts?: true;
}

/** Drops the completion count, because a record from before the end lacks the output after it. */
export function withoutCompletion(usage: ReportedUsage | undefined): ReportedUsage | undefined {
	return usage === undefined ? undefined : { ...usage, completionTokens: undefined };
}

/** Adds the usage of several choices (`n` per prompt): each prompt once, all completions. */
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

const joined = (one: ReportedUsage, other: ReportedUsage, ofSamePrompt: boolean): ReportedUsage => ({
	promptTokens: ofSamePrompt
		? Math.max(one.promptTokens ?? 0, other.promptTokens ?? 0) || undefined
		: sumOf(one.promptTokens, other.promptTokens),
	completionTokens: sumOf(one.completionTokens, other.completionTokens),
	cachedTokens: ofSamePrompt ? Math.max(one.cachedTokens, other.cachedTokens) : one.cachedTokens + other.cachedTokens,
	reasoningTokens: one.reasoningTokens + other.reasoningTokens,
	...(one.contradicts || other.contradicts ? CONTRADICTS : undefined),
});

function sumOf(one: number | undefined, other: number | undefined): number | undefined {
	return one === undefined || other === undefined ? undefined : one + other;
}

/**
 * How servers report usage in a stream.
 * - `last`: each record covers the whole answer so far; the last one counts.
 * - `per_choice`: a record on an event with a choice covers that choice so far; a record on an event without choices
 *   covers the whole answer.
 * - `sum`: each choice ends with its own record without choices, which repeats the prompt.
 */
export type UsageStyle = "last" | "per_choice" | "sum";

/** Higher counts are wrong, and exceed the database's 32-bit columns. */
const TOKENS_MAX = 2 ** 31 - 1;

const CONTRADICTS = { contradicts: true } as const;

/**
 * Reads a usage record; undefined if it has neither count. A prompt count of zero means unknown. A missing count is the
 * total minus the other count. Reasoning is part of the completion, or is added if the server counts it separately; the
 * remainder of the total is then uncounted reasoning. Otherwise a total other than the sum of both is a contradiction,
 * unless the difference equals the cached tokens, which some servers count separately. More cached than prompt tokens,
 * or more reasoning than completion tokens, are contradictions too. `timings` are llama.cpp's.
 */
export function readUsage(
	value: unknown,
	reasoningCount: ReasoningCount = "inside",
	timings?: unknown,
): ReportedUsage | undefined {
	const record = asObject(value);
	if (record === undefined) return undefined;
	const total = largest(record.total_tokens) ?? 0;
	const cached = cachedOf(record, timings);
	let reasoning = reasoningOf(record);
	let prompt = largest(record.prompt_tokens, record.input_tokens) || undefined;
	let completion = largest(record.completion_tokens, record.output_tokens);
	if (completion !== undefined && reasoningCount === "beside") {
		if (reasoning === 0 && prompt !== undefined) reasoning = Math.max(total - prompt - completion, 0);
		completion = Math.min(completion + reasoning, TOKENS_MAX);
	}
	let contradicts = false;
	if (prompt === undefined) {
		if (completion !== undefined && total > completion) prompt = total - completion;
		else if (completion === undefined || completion === 0) return undefined;
	} else {
		const beyond = total === 0 ? 0 : total - prompt - (completion ?? 0);
		if (beyond > 0 && beyond === cached) prompt += cached;
		else if (completion === undefined) completion = beyond > 0 ? beyond : undefined;
		else contradicts = beyond !== 0;
	}
	contradicts ||= (prompt !== undefined && cached > prompt) || (completion !== undefined && reasoning > completion);
	return {
		promptTokens: prompt,
		completionTokens: completion,
		cachedTokens: prompt === undefined || cached > prompt ? 0 : cached,
		reasoningTokens: Math.min(reasoning, completion ?? 0),
		...(contradicts ? CONTRADICTS : undefined),
	};
}

/** The largest of several fields for one count, because the other fields are absent, zero or copies. */
function largest(...values: readonly unknown[]): number | undefined {
	let found: number | undefined;
	for (const value of values) {
		const count = asCount(value, TOKENS_MAX);
		if (count !== undefined && (found === undefined || count > found)) found = count;
	}
	return found;
}

/** Cached tokens in the fields of, in this order: OpenAI's two interfaces, DeepSeek, Moonshot, LiteLLM, llama.cpp. */
function cachedOf(record: JsonObject, timings: unknown): number {
	const cached = largest(
		asObject(record.prompt_tokens_details)?.cached_tokens,
		asObject(record.input_tokens_details)?.cached_tokens,
		record.prompt_cache_hit_tokens,
		record.cached_tokens,
		record.cache_read_input_tokens,
		asObject(timings)?.cache_n,
	);
	return cached ?? 0;
}

/** Reasoning tokens in the fields of, in this order: OpenAI's two interfaces, SGLang. */
function reasoningOf(record: JsonObject): number {
	const reasoning = largest(
		asObject(record.completion_tokens_details)?.reasoning_tokens,
		asObject(record.output_tokens_details)?.reasoning_tokens,
		record.reasoning_tokens,
	);
	return reasoning ?? 0;
}

/** Usage of a complete answer: its top-level record, or the sum of those in its choices (`n` per prompt). */
export function usageOfAnswer(body: JsonObject, reasoningCount: ReasoningCount, n?: number): ReportedUsage | undefined {
	const usage = readUsage(body.usage, reasoningCount, body.timings);
	if (usage !== undefined) return usage;
	return usageOfChoices(
		asObjects(body.choices).map((choice) => readUsage(choice.usage, reasoningCount)),
		n,
	);
}

/** Usage of an answer without generated text. A total alone counts the prompt. TEI reports it in a header. */
export function usageOfInput(value: unknown, headers: Headers): ReportedUsage | undefined {
	const usage = readUsage(value);
	if (usage?.promptTokens !== undefined) return usage;
	const header = headers.get("x-compute-tokens");
	const promptTokens =
		largest(asObject(value)?.total_tokens) || largest(header === null ? undefined : Number(header)) || undefined;
	return promptTokens === undefined
		? undefined
		: { promptTokens, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
}

/** Collects the usage records of a stream. A class, because it allocates less than closures. */
export class UsageTally {
	readonly #besideChoices: boolean;
	/** True if each choice ends with a record: for chats in an event without choices, for completions in its own. */
	readonly #endsChoices: boolean;
	readonly #choicesOfPrompt: number | undefined;
	#whole: ReportedUsage | undefined;
	#final = false;
	#allCounted = false;
	/** Number of records without choices; if each choice ends with such a record, the number of ended choices. */
	#records = 0;
	/** Usage records by choice; undefined if no choice has a record. */
	#ofChoice: (ReportedUsage | undefined)[] | undefined;

	/** `choicesOfPrompt`: choices per prompt of a text completion; undefined for a chat. */
	constructor(style: UsageStyle, choicesOfPrompt?: number) {
		this.#besideChoices = style === "per_choice" || (style === "sum" && choicesOfPrompt !== undefined);
		this.#endsChoices = style === "sum";
		this.#choicesOfPrompt = choicesOfPrompt;
	}

	/** `choiceIndex`: the event's only choice. `finished`: number of choices if all have finished, otherwise 0. */
	note(usage: ReportedUsage | undefined, choiceIndex: number | undefined, hasChoices: boolean, finished: number): void {
		if (usage === undefined) return;
		// A record on a choice that has not finished is a running count, so it is not final.
		if (this.#besideChoices && choiceIndex !== undefined)
			this.noteChoice(usage, choiceIndex, this.#endsChoices && finished > 0);
		else if (this.#endsChoices && !this.#besideChoices && !hasChoices) this.#noteEnd(usage, finished);
		else {
			this.#whole = usage;
			this.#final = !hasChoices || finished > 0;
		}
	}

	/** Adds the usage record of one choice. `isLast`: every choice now has its final record. */
	noteChoice(usage: ReportedUsage | undefined, choiceIndex: number, isLast: boolean): void {
		if (usage === undefined || this.#final) return;
		this.#ofChoice ??= [];
		this.#ofChoice[choiceIndex] = usage;
		this.#whole = undefined;
		this.#allCounted = isLast;
	}

	#noteEnd(usage: ReportedUsage, finished: number): void {
		if (finished > 0 && this.#records >= finished) {
			// A record beyond the number of choices repeats an earlier record.
			if (finished === 1) this.#whole = usage;
			this.#final = true;
			return;
		}
		this.#whole = this.#records > 0 ? usageOfChoices([this.#whole, usage]) : usage;
		this.#records += 1;
		this.#final = finished > 0 && this.#records >= finished;
	}

	current(): ReportedUsage | undefined {
		const parts = this.#ofChoice;
		if (parts !== undefined)
			this.#whole ??= parts.length === 1 ? parts[0] : usageOfChoices(parts, this.#choicesOfPrompt);
		return this.#whole;
	}

	isFinal(): boolean {
		return this.#final || this.#allCounted;
	}
}
