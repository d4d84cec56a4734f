/** Reads token counts from upstream records, which may be partial, repeated, per choice or wrong. */
import { asCount, asObject, type JsonObject } from "./wire-value.ts";

/** Token counts. `promptTokens` includes cached, `completionTokens` includes reasoning. */
export interface TokenUsage {
	readonly promptTokens: number;
	readonly completionTokens: number;
	readonly cachedTokens: number;
	readonly reasoningTokens: number;
}

export interface ReportedUsage extends Pick<TokenUsage, "cachedTokens" | "reasoningTokens"> {
	readonly promptTokens: number | undefined;
	readonly completionTokens: number | undefined;
}

/** Drops the completion count: a record from before the end misses later output. */
export function withoutCompletion(usage: ReportedUsage | undefined): ReportedUsage | undefined {
	return usage === undefined ? undefined : { ...usage, completionTokens: undefined };
}

export function plainUsage(promptTokens: number, completionTokens: number): TokenUsage {
	return { promptTokens, completionTokens, cachedTokens: 0, reasoningTokens: 0 };
}

/** Joins the usage of several choices, `n` per prompt: each prompt counts once, completions add up. */
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

function sumOf(one: number | undefined, other: number | undefined): number | undefined {
	return one === undefined || other === undefined ? undefined : one + other;
}

/**
 * How a server family reports usage during a stream.
 * - `last`: each record is the whole; the last one counts.
 * - `per_choice`: a record on an event with a choice is cumulative for that choice; a record without choices is the whole.
 * - `sum`: each choice ends with a record of its own without choices; each of them repeats the prompt.
 */
export type UsageStyle = "last" | "per_choice" | "sum";

/** A higher count is wrong; the database columns have 32 bits. */
const TOKENS_MAX = 2 ** 31 - 1;

/**
 * Interprets one record; undefined if it has neither half. A prompt count of zero means unknown. If the total exceeds
 * both halves, the rest was generated: some servers count reasoning separately. The exception is a rest equal to the
 * cached tokens, which some servers count separately from the prompt. Cached tokens never exceed the prompt's,
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
	// Reasoning above the completion cannot be a part of it.
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
	// SGLang has it at the top level.
	return asCount(details?.reasoning_tokens, TOKENS_MAX) ?? asCount(record.reasoning_tokens, TOKENS_MAX) ?? 0;
}

/** Follows the usage records of one stream. A class: there is one per open stream. */
export class UsageTally {
	readonly #besideChoices: boolean;
	/** Each choice ends with its own record: in chats without choices, in completions on the choice's event. */
	readonly #endsChoices: boolean;
	readonly #choicesOfPrompt: number | undefined;
	#whole: ReportedUsage | undefined;
	#final = false;
	#allCounted = false;
	/**
	 * Usage records without choices so far. In dialects that end each choice with such a record, one per ended choice.
	 */
	#records = 0;
	/** Undefined if no choice has its own records. */
	#ofChoice: (ReportedUsage | undefined)[] | undefined;

	/** `choicesOfPrompt`: choices per prompt of a text completion; undefined for a chat. */
	constructor(style: UsageStyle, choicesOfPrompt?: number) {
		this.#besideChoices = style === "per_choice" || (style === "sum" && choicesOfPrompt !== undefined);
		this.#endsChoices = style === "sum";
		this.#choicesOfPrompt = choicesOfPrompt;
	}

	/** `choiceIndex`: the event's only choice. `finished`: choices seen if all have their finish reason, otherwise 0. */
	note(record: unknown, choiceIndex: number | undefined, hasChoices: boolean, finished: number): void {
		const usage = readUsage(record);
		if (usage === undefined) return;
		if (this.#besideChoices && choiceIndex !== undefined) {
			if (this.#final) return;
			this.#ofChoice ??= [];
			this.#ofChoice[choiceIndex] = usage;
			this.#whole = undefined;
			// A running count is not the final one.
			this.#allCounted = this.#endsChoices && finished > 0;
		} else if (this.#endsChoices && !this.#besideChoices && !hasChoices) this.#noteEnd(usage, finished);
		else {
			this.#whole = usage;
			this.#final = !hasChoices || finished > 0;
		}
	}

	#noteEnd(usage: ReportedUsage, finished: number): void {
		if (finished > 0 && this.#records >= finished) {
			// A record beyond the number of choices repeats an earlier one.
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
