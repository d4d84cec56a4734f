/** Reads JSON from another machine without assuming any types. */

import { parseExactly } from "../base/exact-json.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export function asObject(value: unknown): JsonObject | undefined {
	return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

export function asArray(value: unknown): readonly unknown[] | undefined {
	return Array.isArray(value) ? value : undefined;
}

export function asText(value: unknown): string | undefined {
	return typeof value === "string" ? value : undefined;
}

export function filledText(value: unknown): string | undefined {
	return typeof value === "string" && value !== "" ? value : undefined;
}

/** A whole number from 0 to `max`; undefined for anything else, including numbers in strings. */
export function asCount(value: unknown, max: number): number | undefined {
	return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max ? value : undefined;
}

/** Limits of what is parsed in one step. Parsing a bracket takes a hundred times as long as a character of text. */
const DEPTH_MAX = 128;
const CONTAINERS_MAX = 30_000;
const TEXTS_MAX = 80_000;
const VALUES_MAX = 100_000;
/** Shorter texts are parsed without this check. */
const SHORT_CHARS = 16 * 1024;

/** Some servers send the end marker after an unstreamed JSON object, too. It is searched only up to this length. */
const END_MARKERS = /(?<=\}\s*)(?:\s(?:data: ?)?\[DONE\]\s*)+$/;
const END_MARKERS_CHARS_MAX = 64;

/** The parsed JSON; undefined if it is invalid, is `null`, or exceeds the limits. */
export function parseJson(text: string): unknown {
	if (exceedsWireLimits(text)) return undefined;
	try {
		return withExactToolArguments(JSON.parse(text), text) ?? undefined;
	} catch {
		const [markers] = END_MARKERS.exec(text.slice(-END_MARKERS_CHARS_MAX)) ?? [];
		return markers === undefined ? undefined : parseJson(text.slice(0, -markers.length));
	}
}

/** For longer texts, arguments are not parsed a second time to keep their digits. */
const EXACT_CHARS_MAX = 64 * 1024;

/** Writes tool call arguments as text. If a server sent an object, integers beyond 2^53 keep their digits. */
export function withExactToolArguments(parsed: unknown, text: string): unknown {
	for (const choice of asArray(asObject(parsed)?.choices) ?? []) {
		const { delta, message } = asObject(choice) ?? {};
		const { tool_calls: calls, function_call: call } = asObject(delta ?? message) ?? {};
		if (calls === undefined && call === undefined) continue;
		const bodies = [...asObjects(calls).map((each) => each.function), call];
		if (text.length <= EXACT_CHARS_MAX && bodies.some((body) => asObject(asObject(body)?.arguments) !== undefined))
			return parseExactly(text);
	}
	return parsed;
}

/** True if a text exceeds the limits. Skips strings by `indexOf`, which is native and fast. */
export function exceedsWireLimits(text: string): boolean {
	const { length } = text;
	if (length < SHORT_CHARS) return false;
	let depth = 0;
	let containers = 0;
	let texts = 0;
	let values = 0;
	for (let at = 0; at < length; at += 1) {
		const sign = text.charCodeAt(at);
		if (sign === QUOTE) {
			at = stringEnd(text, at);
			texts += 1;
			if (at < 0) return texts > TEXTS_MAX;
		} else if (sign === COMMA) values += 1;
		else if (sign === 0x5b || sign === 0x7b) {
			depth += 1;
			containers += 1;
			if (depth > DEPTH_MAX) return true;
		} else if (sign === 0x5d || sign === 0x7d) depth -= 1;
	}
	return containers > CONTAINERS_MAX || texts > TEXTS_MAX || values > VALUES_MAX;
}

const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Index of the end of the string that starts at `from`; negative if the string does not end. */
function stringEnd(text: string, from: number): number {
	for (let end = text.indexOf('"', from + 1); ; end = text.indexOf('"', end + 1)) {
		if (end < 0) return end;
		let before = end - 1;
		while (text.charCodeAt(before) === BACKSLASH) before -= 1;
		if ((end - before) % 2 === 1) return end;
	}
}

export function asObjects(value: unknown): JsonObject[] {
	const objects: JsonObject[] = [];
	for (const item of asArray(value) ?? []) {
		const object = asObject(item);
		if (object !== undefined) objects.push(object);
	}
	return objects;
}
