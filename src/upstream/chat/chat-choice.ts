import { serverFailure, unreadableAnswer } from "../call/failure.ts";
import { asArray, asCount, asObject, asObjects, asText, filledText, type JsonObject } from "../wire-value.ts";
import { copyAnnotations, MESSAGE_READERS } from "./answer-fields.ts";
import type { ChatChoice, ChatChunkChoice, FinishReason } from "./chat-answer.ts";
import { rebuildLogprobs } from "./logprobs.ts";
import { rebuildFunction, rebuildToolCall, ToolCalls } from "./tool-calls.ts";

/** Copies the choices of a chat answer by a list of allowed fields: no rendered prompts, token ids or paths. */

/** OpenAI's interface allows `n` up to 128, so a higher index is an error. */
export const CHOICES_MAX = 128;

export interface ChoiceProgress {
	started: boolean;
	finished: boolean;
	/** Finish reason that fits the choice's calls; undefined without calls. */
	calls: "tool_calls" | "function_call" | undefined;
	/** Tool calls of a streamed choice; undefined before the first call. */
	toolCalls: ToolCalls | undefined;
	outputBytes: number;
}

export function newChoiceProgress(): ChoiceProgress {
	return { started: false, finished: false, calls: undefined, toolCalls: undefined, outputBytes: 0 };
}

/**
 * Copies a streamed choice; undefined if it has no content. A role is not content, so that another replica can replace
 * a failed one until the first token.
 */
export function rebuildChunkChoice(
	raw: JsonObject,
	index: number,
	progress: ChoiceProgress,
): ChatChunkChoice | undefined {
	const end = finishReason(raw.finish_reason);
	// Some servers repeat the finish reason on the event with the usage.
	const reason = progress.finished ? null : end;
	// The complete message, if a server sends the whole answer as one event.
	const whole = reason === null || progress.started ? undefined : asObject(raw.message);
	let delta = rebuildDelta(asObject(raw.delta), progress) ?? rebuildDelta(whole, progress);
	if (reason === null && delta === undefined) return undefined;
	const finish = agreeing(reason, progress);
	if (finish !== null) delta = lastDelta(delta ?? {}, progress);
	const choice = { index, delta: opened(delta ?? {}, progress), finish_reason: finish };
	const logprobs = rebuildLogprobs(raw.logprobs);
	return logprobs === null ? choice : { index, delta: choice.delta, logprobs, finish_reason: finish };
}

/** Copies an unstreamed choice and adds it to `progress`. `counted`: with usage, finish reasons may be missing. */
export function rebuildChoice(
	raw: unknown,
	place: number,
	progress: ChoiceProgress,
	counted: boolean,
	logprobsOf: (value: unknown) => JsonObject | null,
): ChatChoice {
	const choice = asObject(raw);
	const source = asObject(choice?.message);
	if (choice === undefined || source === undefined) {
		throw unreadableAnswer("a choice without a message");
	}
	const message: Record<string, unknown> = {
		role: "assistant",
		content: asText(source.content) ?? null,
		refusal: asText(source.refusal) ?? null,
	};
	addTexts(message, source, progress);
	addTools(message, source, progress, true);
	addOthers(message, source, progress);
	const reason = finishReason(choice.finish_reason) ?? (counted ? "stop" : null);
	const finish = agreeing(reason, progress);
	if (finish === null) throw serverFailure("a choice without a finish reason");
	return {
		index: asCount(choice.index, CHOICES_MAX - 1) ?? place,
		message,
		logprobs: logprobsOf(choice.logprobs),
		finish_reason: finish,
	};
}

/** Null while the choice continues. Throws UpstreamFailure for a finish reason that reports an error. */
export function finishReason(value: unknown): FinishReason | null {
	const reason = typeof value === "string" ? value.toLowerCase() : value;
	switch (reason) {
		case undefined:
		case null:
		// Some servers send an empty reason before the end.
		case "":
			return null;
		case "stop":
		case "length":
		case "tool_calls":
		case "content_filter":
		case "function_call":
			return reason;
		case "model_length":
		case "max_tokens":
		case "max_output_tokens":
			return "length";
		case "content_filtered":
		case "safety":
			return "content_filter";
		case "abort":
		case "cancelled":
		case "error":
		case "insufficient_system_resource":
			throw serverFailure(`finish reason "${reason}"`);
		default:
			// Other names of an ordinary end, such as `eos_token` and `stop_sequence`.
			return "stop";
	}
}

/**
 * Makes the reason of an ordinary end fit the choice's content. Some agents run no calls after `stop`; others repeat a
 * request forever after `tool_calls` without calls.
 */
function agreeing<Reason extends FinishReason | null>(reason: Reason, { calls }: ChoiceProgress) {
	return reason === "stop" || reason === "tool_calls" || reason === "function_call" ? (calls ?? "stop") : reason;
}

function rebuildDelta(source: JsonObject | undefined, progress: ChoiceProgress): Record<string, unknown> | undefined {
	if (source === undefined) return undefined;
	const delta: Record<string, unknown> = {};
	addTexts(delta, source, progress);
	addTools(delta, source, progress, false);
	addOthers(delta, source, progress);
	for (const _field in delta) return delta;
	return undefined;
}

/** Final event for a choice whose finish reason the server omitted. */
export function impliedEnd(index: number, progress: ChoiceProgress): ChatChunkChoice {
	const delta = opened(lastDelta({}, progress), progress);
	return { index, delta, finish_reason: agreeing("stop", progress) };
}

function lastDelta(delta: Record<string, unknown>, progress: ChoiceProgress): Record<string, unknown> {
	progress.finished = true;
	progress.toolCalls?.end(delta);
	return delta;
}

/** Adds role and `content` to the first delta of a choice, as OpenAI does. */
function opened(delta: Record<string, unknown>, progress: ChoiceProgress): Record<string, unknown> {
	if (progress.started) return delta;
	progress.started = true;
	const content = delta.content ?? (delta.tool_calls === undefined ? "" : null);
	return { role: "assistant", ...delta, content };
}

/** Adds content, refusal and reasoning unless they are empty. */
function addTexts(target: Record<string, unknown>, source: JsonObject, progress: ChoiceProgress): void {
	const { content } = source;
	let text = asText(content);
	let refusal = asText(source.refusal);
	let reasoning = filledText(source.reasoning_content) ?? filledText(source.reasoning);
	if (typeof content !== "string" && content !== null && content !== undefined) {
		const parts = readContentParts(content);
		text = parts.text;
		refusal = parts.refusal ?? refusal;
		reasoning = parts.reasoning ?? reasoning;
		const references = copyAnnotations(parts.references);
		if (references !== undefined) target.annotations = references;
	}
	if (text) target.content = text;
	if (refusal) target.refusal = refusal;
	if (reasoning) target.reasoning_content = reasoning;
	progress.outputBytes += bytesOf(text) + bytesOf(refusal) + bytesOf(reasoning);
}

function addOthers(target: Record<string, unknown>, source: JsonObject, progress: ChoiceProgress): void {
	const before = progress.outputBytes;
	for (const [name, read] of MESSAGE_READERS) {
		const raw = source[name];
		if (raw === null || raw === undefined) continue;
		const value = read(raw);
		if (value === undefined) continue;
		const known = target[name];
		target[name] = Array.isArray(known) && Array.isArray(value) ? [...known, ...value] : value;
	}
	const { audio, reasoning_details: details, reasoning_content: reasoning } = target;
	progress.outputBytes = before + bytesOf(asText(asObject(audio)?.transcript));
	// If the choice has a text, `reasoning_details` usually repeat it, so they count as output only without a text.
	if (reasoning === undefined && details !== undefined)
		for (const detail of asObjects(details))
			progress.outputBytes += bytesOf(asText(detail.text) ?? asText(detail.summary));
}

function addTools(target: Record<string, unknown>, source: JsonObject, progress: ChoiceProgress, whole: boolean): void {
	const rawCalls = source.tool_calls;
	if (Array.isArray(rawCalls) && rawCalls.length > 0) {
		const calls: JsonObject[] = [];
		for (const value of rawCalls) {
			const raw = asObject(value);
			if (raw === undefined) continue;
			if (whole) calls.push(rebuildToolCall(raw, progress));
			else callsOf(progress).add(raw, calls, progress);
		}
		if (calls.length > 0) {
			target.tool_calls = calls;
			progress.calls = "tool_calls";
		}
	}
	const legacy = asObject(source.function_call);
	if (legacy === undefined) return;
	target.function_call = whole ? rebuildFunction(legacy, progress) : callsOf(progress).addFunction(legacy, progress);
	progress.calls ??= "function_call";
}

function callsOf(progress: ChoiceProgress): ToolCalls {
	progress.toolCalls ??= new ToolCalls();
	return progress.toolCalls;
}

const bytesOf = (text: string | undefined): number => (text === undefined ? 0 : Buffer.byteLength(text));

/** Texts of a message's `content`, which may be a string or a list of parts. */
interface Content {
	text: string | undefined;
	reasoning: string | undefined;
	refusal: string | undefined;
	references: JsonObject[];
}

const PARTS_MAX = 10_000;

/** Reads text as content and thinking as reasoning. UpstreamFailure for other parts, which the answer would lack. */
function readContentParts(content: unknown): Content {
	const read: Content = { text: undefined, reasoning: undefined, refusal: undefined, references: [] };
	const parts = asArray(content) ?? [content];
	if (parts.length > PARTS_MAX) throw serverFailure("a content in too many parts");
	for (const part of parts) readPart(part, read);
	return read;
}

function readPart(value: unknown, into: Content): void {
	if (typeof value === "string") {
		into.text = (into.text ?? "") + value;
		return;
	}
	const part = asObject(value);
	switch (part?.type) {
		case "text":
		case "output_text":
			into.text = (into.text ?? "") + textOf(part.text);
			return;
		case "thinking":
		case "reasoning":
			into.reasoning = (into.reasoning ?? "") + textOf(part.thinking ?? part.reasoning ?? part.text);
			return;
		case "refusal":
			into.refusal = (into.refusal ?? "") + textOf(part.refusal);
			return;
		case "reference":
			into.references.push(part);
			return;
		default:
			throw serverFailure("a part of the content of a kind that is not known");
	}
}

function textOf(value: unknown): string {
	const text = asText(value);
	if (text !== undefined) return text;
	return (asArray(value)?.slice(0, PARTS_MAX) ?? [])
		.map((part) => asText(part) ?? asText(asObject(part)?.text) ?? "")
		.join("");
}
