import { mapInTurns, type TimeSlice } from "../../base/time-slice.ts";
import { asArray, asCount, asObject, asText, type JsonObject } from "../wire-value.ts";

/** Maximum number of alternatives per token; OpenAI's interface allows 20. */
const ALTERNATIVES_MAX = 128;
const TOKEN_BYTES_MAX = 1_024;
/** Value that OpenAI sends for a very unlikely token. */
const UNLIKELY = -9_999;

/** Copies the `logprobs` of a chat choice; null if the server sent none. */
export function rebuildLogprobs(value: unknown): JsonObject | null {
	const source = asObject(value);
	if (source === undefined) return null;
	const content = tokens(source.content);
	const refusal = tokens(source.refusal);
	return content === null && refusal === null ? null : { content, refusal };
}

export async function rebuildLogprobsInTurns(value: unknown, timeSlice: TimeSlice): Promise<JsonObject | null> {
	const source = asObject(value);
	if (source === undefined) return null;
	const content = await tokensInTurns(source.content, timeSlice);
	const refusal = await tokensInTurns(source.refusal, timeSlice);
	return content === null && refusal === null ? null : { content, refusal };
}

async function tokensInTurns(value: unknown, timeSlice: TimeSlice): Promise<JsonObject[] | null> {
	const entries = asArray(value);
	if (entries === undefined) return null;
	const rebuilt = await mapInTurns(entries, tokenOf, timeSlice);
	return rebuilt.filter((token) => token !== undefined);
}

function tokens(value: unknown): JsonObject[] | null {
	const entries = asArray(value);
	if (entries === undefined) return null;
	const rebuilt: JsonObject[] = [];
	for (const entry of entries) {
		const token = tokenOf(entry);
		if (token !== undefined) rebuilt.push(token);
	}
	return rebuilt;
}

function tokenOf(entry: unknown): JsonObject | undefined {
	const token = tokenLogprob(entry);
	if (token === undefined) return undefined;
	const top: JsonObject[] = [];
	for (const other of asArray(asObject(entry)?.top_logprobs)?.slice(0, ALTERNATIVES_MAX) ?? []) {
		const alternative = tokenLogprob(other);
		if (alternative !== undefined) top.push(alternative);
	}
	return { ...token, top_logprobs: top };
}

function tokenLogprob(value: unknown): JsonObject | undefined {
	const source = asObject(value);
	const token = asText(source?.token);
	if (source === undefined || token === undefined) return undefined;
	const bytes = asArray(source.bytes)
		?.slice(0, TOKEN_BYTES_MAX)
		.filter((byte) => asCount(byte, 255) !== undefined);
	// JSON has no minus infinity, so llama.cpp sends null.
	const logprob = typeof source.logprob === "number" ? source.logprob : UNLIKELY;
	return { token, logprob, bytes: bytes ?? null };
}
