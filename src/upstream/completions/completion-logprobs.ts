import { mapInTurns, type TimeSlice } from "../../base/time-slice.ts";
import { asArray, asCount, asObject, asObjects, asText, type JsonObject } from "../wire-value.ts";

/** The interface has 5 at most. */
const ALTERNATIVES_MAX = 128;

/**
 * `logprobs` in the form of this endpoint: parallel arrays. Newer llama.cpp sends the form of chats here, which is
 * rewritten; offsets into the text are then not known and left out.
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

/** The same of an answer that may have very many. */
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

/** By token, or the list of records that chats have. */
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
