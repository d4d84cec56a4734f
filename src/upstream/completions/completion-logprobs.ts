import { mapInTurns, type TimeSlice } from "../../base/time-slice.ts";
import { asArray, asCount, asObject, asObjects, asText, type JsonObject } from "../wire-value.ts";

/** OpenAI's interface has 5 at most. */
const ALTERNATIVES_MAX = 128;

/**
 * Rebuilds `logprobs` in this endpoint's format of parallel arrays. Newer llama.cpp sends the chat format, which is
 * converted; the offsets into the text are unknown then and left out.
 */
export function completionLogprobs(value: unknown, tops = topsOf(value)?.map(topOf)): JsonObject | null {
	const source = asObject(value);
	if (source === undefined) return null;
	if (Array.isArray(source.content)) return logprobsOfChat(asObjects(source.content), tops);
	const tokens = asArray(source.tokens)?.map((token) => asText(token) ?? "");
	if (tokens === undefined) return null;
	return {
		tokens,
		token_logprobs: asArray(source.token_logprobs)?.map(numberOrNull) ?? null,
		top_logprobs: tops ?? null,
		text_offset: asArray(source.text_offset)?.map((at) => asCount(at, Number.MAX_SAFE_INTEGER) ?? 0) ?? null,
	};
}

/** As `completionLogprobs`, in time slices. */
export async function completionLogprobsInTurns(value: unknown, timeSlice: TimeSlice): Promise<JsonObject | null> {
	const tops = topsOf(value);
	return completionLogprobs(value, tops === undefined ? undefined : await mapInTurns(tops, topOf, timeSlice));
}

/** The alternatives of each token. */
function topsOf(value: unknown): readonly unknown[] | undefined {
	const source = asObject(value);
	return Array.isArray(source?.content)
		? asObjects(source.content).map(({ top_logprobs: tops }) => tops ?? [])
		: asArray(source?.top_logprobs);
}

function logprobsOfChat(entries: readonly JsonObject[], tops: readonly (JsonObject | null)[] | undefined): JsonObject {
	return {
		tokens: entries.map((entry) => asText(entry.token) ?? ""),
		token_logprobs: entries.map((entry) => numberOrNull(entry.logprob)),
		top_logprobs: tops,
		text_offset: null,
	};
}

/** A map by token, or the list of records of chats. */
function topOf(value: unknown): JsonObject | null {
	if (Array.isArray(value)) {
		const others = asObjects(value.slice(0, ALTERNATIVES_MAX)).filter(({ logprob }) => typeof logprob === "number");
		return Object.fromEntries(others.map(({ token, logprob }) => [asText(token) ?? "", logprob]));
	}
	const source = asObject(value);
	if (source === undefined) return null;
	return Object.fromEntries(Object.entries(source).filter(([, logprob]) => typeof logprob === "number"));
}

function numberOrNull(value: unknown): number | null {
	return typeof value === "number" ? value : null;
}
