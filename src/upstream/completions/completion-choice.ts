/** Choices of a text completion, rebuilt field by field from an allow-list. */
import { finishReason } from "../chat/chat-choice.ts";
import { asArray, asCount, asObject, asObjects, asText, type JsonObject } from "../wire-value.ts";

export type CompletionFinish = "stop" | "length" | "content_filter";

/** One choice, whole or a part of it, ready for JSON.stringify in OpenAI's field order. */
export interface CompletionChoice<Finish = CompletionFinish | null> {
	readonly text: string;
	/** Prompt × choices a prompt + choice. */
	readonly index: number;
	readonly logprobs: JsonObject | null;
	readonly finish_reason: Finish;
}

/** Throws UpstreamFailure at a finish that stands for a fault of the server. */
export function completionFinish(value: unknown): CompletionFinish | null {
	const reason = finishReason(value);
	return reason === null || reason === "length" || reason === "content_filter" ? reason : "stop";
}

/**
 * `logprobs` in the form of this endpoint: parallel arrays. Newer llama.cpp sends the form of chats here, which is
 * rewritten; offsets into the text are then not known and left out.
 */
export function completionLogprobs(value: unknown): JsonObject | null {
	const source = asObject(value);
	if (source === undefined) return null;
	if (Array.isArray(source.content)) return logprobsOfChat(asObjects(source.content));
	const tokens = asArray(source.tokens)?.map((token) => asText(token) ?? "");
	if (tokens === undefined) return null;
	return {
		tokens,
		token_logprobs: asArray(source.token_logprobs)?.map(numberOrNull) ?? null,
		top_logprobs: asArray(source.top_logprobs)?.map(topOf) ?? null,
		text_offset: asArray(source.text_offset)?.map((at) => asCount(at, Number.MAX_SAFE_INTEGER) ?? 0) ?? null,
	};
}

function logprobsOfChat(entries: readonly JsonObject[]): JsonObject {
	return {
		tokens: entries.map((entry) => asText(entry.token) ?? ""),
		token_logprobs: entries.map((entry) => numberOrNull(entry.logprob)),
		top_logprobs: entries.map((entry) =>
			Object.fromEntries(
				asObjects(entry.top_logprobs)
					.filter((other) => typeof other.logprob === "number")
					.map((other) => [asText(other.token) ?? "", other.logprob]),
			),
		),
		text_offset: null,
	};
}

function topOf(value: unknown): JsonObject | null {
	const source = asObject(value);
	if (source === undefined) return null;
	return Object.fromEntries(Object.entries(source).filter(([, logprob]) => typeof logprob === "number"));
}

function numberOrNull(value: unknown): number | null {
	return typeof value === "number" ? value : null;
}
