/** Payloads of server-sent events, for every kind of stream. */
import { asObject, hasTooMuch, type JsonObject } from "../wire-value.ts";
import { died } from "./failure.ts";

const END_MARKER = "[DONE]";

export function isEndMarker(payload: string): boolean {
	return payload === END_MARKER || payload.trim() === END_MARKER;
}

export function parseEvent(payload: string): JsonObject {
	if (hasTooMuch(payload)) throw died("an event with too much structure");
	let value: unknown;
	try {
		value = JSON.parse(payload);
	} catch {
		throw died("an event that is not JSON");
	}
	const event = asObject(value);
	if (event === undefined) throw died("an event that is not an object");
	return event;
}
