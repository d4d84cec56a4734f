import { asArray, asCount, asObject, asText, type JsonObject } from "../wire-value.ts";

/** The `logprobs` of a chat choice, rebuilt; null where the server sent none. */
export function rebuildLogprobs(value: unknown): JsonObject | null {
	const source = asObject(value);
	if (source === undefined) return null;
	const content = tokens(source.content);
	const refusal = tokens(source.refusal);
	return content === null && refusal === null ? null : { content, refusal };
}

function tokens(value: unknown): JsonObject[] | null {
	const entries = asArray(value);
	if (entries === undefined) return null;
	const rebuilt: JsonObject[] = [];
	for (const entry of entries) {
		const token = tokenLogprob(entry);
		if (token === undefined) continue;
		const top: JsonObject[] = [];
		for (const other of asArray(asObject(entry)?.top_logprobs) ?? []) {
			const alternative = tokenLogprob(other);
			if (alternative !== undefined) top.push(alternative);
		}
		rebuilt.push({ ...token, top_logprobs: top });
	}
	return rebuilt;
}

function tokenLogprob(value: unknown): JsonObject | undefined {
	const source = asObject(value);
	const token = asText(source?.token);
	if (source === undefined || token === undefined || typeof source.logprob !== "number") return undefined;
	const bytes = asArray(source.bytes)?.filter((byte) => asCount(byte, 255) !== undefined);
	return { token, logprob: source.logprob, bytes: bytes ?? null };
}
