/**
 * Choices of a chat answer, rebuilt field by field from an allow-list. What a server adds of its own (rendered prompts,
 * token ids, file paths, timings) has no way through.
 */
import { newId } from "../../base/id.ts";
import { failed, unreadable } from "../call/failure.ts";
import { asArray, asCount, asObject, asText, type JsonObject } from "../wire-value.ts";
import type { ChatChoice, ChatChunkChoice, FinishReason } from "./chat-answer.ts";
import { rebuildLogprobs } from "./logprobs.ts";

/** `n` is at most 128 in the interface that we speak, so no honest answer has an index beyond it. */
export const CHOICES_MAX = 128;
const TOOL_CALLS_MAX = 1024;

/** What a stream has said about one choice so far. */
export interface ChoiceProgress {
	started: boolean;
	finished: boolean;
	/** Tool calls whose first delta has passed, by index. */
	readonly toolCalls: boolean[];
	/** Bytes of generated text, tool arguments and reasoning. */
	outputBytes: number;
}

export function newChoiceProgress(): ChoiceProgress {
	return { started: false, finished: false, toolCalls: [], outputBytes: 0 };
}

/**
 * One streamed choice, or undefined if it says nothing: role-only and empty deltas are left out, the role travels on
 * the first delta with substance. So the first event is the first token, and until then another replica can take over.
 */
export function rebuildChunkChoice(
	raw: JsonObject,
	index: number,
	progress: ChoiceProgress,
): ChatChunkChoice | undefined {
	const finish = finishReason(raw.finish_reason);
	const delta = rebuildDelta(asObject(raw.delta), progress);
	if (finish === null && delta === undefined) return undefined;
	if (finish !== null) progress.finished = true;
	const choice = { index, delta: opened(delta ?? {}, progress), finish_reason: finish };
	const logprobs = rebuildLogprobs(raw.logprobs);
	return logprobs === null ? choice : { index, delta: choice.delta, logprobs, finish_reason: finish };
}

/** One choice of an unstreamed answer; adds its output to `progress`. Throws UpstreamFailure if it is none. */
export function rebuildChoice(raw: unknown, progress: ChoiceProgress): ChatChoice {
	const choice = asObject(raw);
	const source = asObject(choice?.message);
	if (choice === undefined || source === undefined) {
		throw unreadable("a choice without a message");
	}
	const finish = finishReason(choice.finish_reason);
	if (finish === null) throw failed("a choice without a finish reason");
	const content = asText(source.content);
	const refusal = asText(source.refusal);
	const message: Record<string, unknown> = { role: "assistant", content: content ?? null, refusal: refusal ?? null };
	progress.outputBytes += bytesOf(content) + bytesOf(refusal);
	addReasoning(message, source, progress);
	addTools(message, source, progress, true);
	addAnnotations(message, source);
	return {
		index: asCount(choice.index, CHOICES_MAX - 1) ?? 0,
		message,
		logprobs: rebuildLogprobs(choice.logprobs),
		finish_reason: finish,
	};
}

/** Null while the choice goes on. Servers that stop for a fault of their own say so here, and that is a failure. */
export function finishReason(value: unknown): FinishReason | null {
	switch (value) {
		case undefined:
		case null:
		// Some builds send it on events in the middle; as the last word it is a missing finish, which fails too.
		case "":
			return null;
		case "stop":
		case "length":
		case "tool_calls":
		case "content_filter":
		case "function_call":
			return value;
		case "abort":
		case "error":
			throw failed(`finish reason "${value}"`);
		default:
			// `eos_token`, `stop_sequence` and whatever else a server calls an ordinary end.
			return "stop";
	}
}

/** Undefined if the delta has no substance. */
function rebuildDelta(source: JsonObject | undefined, progress: ChoiceProgress): Record<string, unknown> | undefined {
	if (source === undefined) return undefined;
	const delta: Record<string, unknown> = {};
	const content = source.content;
	if (typeof content === "string" && content !== "") {
		delta.content = content;
		progress.outputBytes += Buffer.byteLength(content);
	}
	const refusal = asText(source.refusal);
	if (refusal !== undefined && refusal !== "") {
		delta.refusal = refusal;
		progress.outputBytes += bytesOf(refusal);
	}
	addReasoning(delta, source, progress);
	addTools(delta, source, progress, false);
	addAnnotations(delta, source);
	for (const _field in delta) return delta;
	return undefined;
}

/** The first delta of a choice carries the role and some `content`, as the interface's own servers send it. */
function opened(delta: Record<string, unknown>, progress: ChoiceProgress): Record<string, unknown> {
	if (progress.started) return delta;
	progress.started = true;
	const content = delta.content ?? (delta.tool_calls === undefined ? "" : null);
	return { role: "assistant", ...delta, content };
}

function addReasoning(target: Record<string, unknown>, source: JsonObject, progress: ChoiceProgress): void {
	const reasoning = asText(source.reasoning_content) ?? asText(source.reasoning);
	if (reasoning === undefined || reasoning === "") return;
	target.reasoning_content = reasoning;
	progress.outputBytes += bytesOf(reasoning);
}

function addTools(target: Record<string, unknown>, source: JsonObject, progress: ChoiceProgress, whole: boolean): void {
	const rawCalls = source.tool_calls;
	if (Array.isArray(rawCalls) && rawCalls.length > 0) {
		const calls: unknown[] = [];
		for (let at = 0; at < rawCalls.length; at += 1) {
			const raw = asObject(rawCalls[at]);
			if (raw === undefined) continue;
			const call = whole ? rebuildToolCall(raw, progress) : rebuildToolCallDelta(raw, at, progress);
			if (call !== undefined) calls.push(call);
		}
		if (calls.length > 0) target.tool_calls = calls;
	}
	const legacy = asObject(source.function_call);
	if (legacy !== undefined) target.function_call = rebuildFunction(legacy, progress, whole);
}

function rebuildToolCall(raw: JsonObject, progress: ChoiceProgress): JsonObject {
	const id = nonEmpty(raw.id) ?? newId("call");
	const custom = raw.type === "custom" ? asObject(raw.custom) : undefined;
	if (custom !== undefined) return { id, type: "custom", custom: rebuildCustom(custom, progress, true) };
	return { id, type: "function", function: rebuildFunction(asObject(raw.function) ?? {}, progress, true) };
}

/** The first delta of a call has index, id, type and name whatever the server left out; later ones only the rest. */
function rebuildToolCallDelta(raw: JsonObject, at: number, progress: ChoiceProgress): JsonObject | undefined {
	const index = asCount(raw.index, TOOL_CALLS_MAX) ?? toolIndexWithout(raw, at, progress);
	const first = progress.toolCalls[index] !== true;
	progress.toolCalls[index] = true;
	const custom = raw.type === "custom" || raw.custom !== undefined ? asObject(raw.custom) : undefined;
	const part =
		custom === undefined
			? { function: rebuildFunction(asObject(raw.function) ?? {}, progress, first) }
			: { custom: rebuildCustom(custom, progress, first) };
	if (!first) return { index, ...part };
	return { index, id: nonEmpty(raw.id) ?? newId("call"), type: custom === undefined ? "function" : "custom", ...part };
}

/** Without an index a delta that names a function opens the next call, any other continues the last one. */
function toolIndexWithout(raw: JsonObject, at: number, progress: ChoiceProgress): number {
	const known = progress.toolCalls.length;
	if (known === 0) return at;
	const opens = nonEmpty(asObject(raw.function)?.name) !== undefined || nonEmpty(raw.id) !== undefined;
	return opens ? Math.min(known, TOOL_CALLS_MAX) : known - 1;
}

function rebuildFunction(raw: JsonObject, progress: ChoiceProgress, first: boolean): JsonObject {
	const name = asText(raw.name);
	const args = argumentsText(raw.arguments);
	progress.outputBytes += bytesOf(name) + bytesOf(args);
	if (first) return { name: name ?? "", arguments: args ?? "" };
	return { ...(name === undefined || name === "" ? {} : { name }), arguments: args ?? "" };
}

function rebuildCustom(raw: JsonObject, progress: ChoiceProgress, first: boolean): JsonObject {
	const name = asText(raw.name);
	const input = asText(raw.input) ?? "";
	progress.outputBytes += bytesOf(name) + bytesOf(input);
	return first ? { name: name ?? "", input } : { input };
}

/** Some servers send the arguments as an object; the interface has them as JSON text. */
function argumentsText(value: unknown): string | undefined {
	if (typeof value === "string") return value;
	return typeof value === "object" && value !== null ? JSON.stringify(value) : undefined;
}

function addAnnotations(target: Record<string, unknown>, source: JsonObject): void {
	const annotations: JsonObject[] = [];
	for (const raw of asArray(source.annotations) ?? []) {
		const citation = asObject(asObject(raw)?.url_citation);
		const url = asText(citation?.url);
		if (citation === undefined || url === undefined) continue;
		annotations.push({
			type: "url_citation",
			url_citation: {
				start_index: asCount(citation.start_index, Number.MAX_SAFE_INTEGER) ?? 0,
				end_index: asCount(citation.end_index, Number.MAX_SAFE_INTEGER) ?? 0,
				url,
				title: asText(citation.title) ?? "",
			},
		});
	}
	if (annotations.length > 0) target.annotations = annotations;
}

function nonEmpty(value: unknown): string | undefined {
	return typeof value === "string" && value !== "" ? value : undefined;
}

function bytesOf(text: string | undefined): number {
	return text === undefined ? 0 : Buffer.byteLength(text);
}
