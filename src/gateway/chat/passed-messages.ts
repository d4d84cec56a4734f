import type { RawJson } from "../../base/json-structure.ts";
import { RAW_FIELD_CHARS_MIN } from "../body/json-body.ts";

export type ContentPart = Readonly<Record<string, unknown>> & { readonly type: string };

/** Messages with escapes are sent raw, because serializing a megabyte with an escape takes 1 ms longer than copying. */
const ESCAPE = "\\";
/** Messages of this length are sent raw: serializing text beyond Latin-1 of this length would take 5 ms in one step. */
const LONG_CHARS = 256 * 1024;

/** Text members of a user's message, and of assistant messages that clients send back. */
const TEXT_FIELDS: ReadonlySet<string> = new Set([
	"role",
	"content",
	"name",
	"tool_call_id",
	"refusal",
	"reasoning_content",
	"reasoning",
]);
/** Members of an assistant message that may be null or an empty list. */
const EMPTY_FIELDS: ReadonlySet<string> = new Set(["tool_calls", "function_call", "audio", "annotations"]);
const CALL_FIELDS: ReadonlySet<string> = new Set(["id", "type"]);
const FUNCTION_FIELDS: ReadonlySet<string> = new Set(["name", "arguments"]);

/**
 * True if the parsed messages have exactly the members of `raw`, so that the raw JSON can be sent. Returns false for
 * unknown fields and repeated names, because a server might read a member that the gateway did not check. `isCut`:
 * strings were cut from the messages, so they cannot be serialized.
 */
export function canSendRaw(messages: readonly object[], { text, names }: RawJson, isCut: boolean): boolean {
	if (text.length < RAW_FIELD_CHARS_MIN) return false;
	let known = 0;
	for (const message of messages) {
		const inMessage = namesOfMessage(message);
		if (inMessage === undefined) return false;
		known += inMessage;
	}
	return known === names && (isCut || text.length >= LONG_CHARS || text.includes(ESCAPE));
}

function namesOfMessage(message: object): number | undefined {
	let names = 0;
	for (const field in message) {
		const value = (message as Record<string, unknown>)[field];
		names += 1;
		if (typeof value === "string" || value === null) {
			if (!TEXT_FIELDS.has(field) && (value !== null || !EMPTY_FIELDS.has(field))) return undefined;
		} else if (field === "content" && Array.isArray(value)) {
			for (const part of value as readonly ContentPart[]) names += namesOfPart(part);
		} else if (field === "tool_calls" && Array.isArray(value)) {
			for (const call of value) {
				const inCall = namesOfCall(call);
				if (inCall === undefined) return undefined;
				names += inCall;
			}
		} else if (!EMPTY_FIELDS.has(field) || !Array.isArray(value) || value.length > 0) return undefined;
	}
	return names;
}

/** Counts the member names of a content part and its nested object, to detect names that the raw JSON repeats. */
function namesOfPart(part: ContentPart): number {
	let names = 0;
	for (const field in part) {
		names += 1;
		const value = part[field];
		if (typeof value === "object" && value !== null) names += Object.keys(value).length;
	}
	return names;
}

function namesOfCall(call: object): number | undefined {
	let names = 0;
	for (const field in call) {
		const value = (call as Record<string, unknown>)[field];
		names += 1;
		if (typeof value === "string") {
			if (!CALL_FIELDS.has(field)) return undefined;
		} else if (field === "function" && typeof value === "object" && value !== null) {
			for (const name in value) {
				if (!FUNCTION_FIELDS.has(name) || typeof (value as Record<string, unknown>)[name] !== "string")
					return undefined;
				names += 1;
			}
		} else return undefined;
	}
	return names;
}
