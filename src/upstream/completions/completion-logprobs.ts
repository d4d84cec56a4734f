import { asArray, asCount, asObject, asObjects, asText, type JsonObject } from "../wire-value.ts";

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
