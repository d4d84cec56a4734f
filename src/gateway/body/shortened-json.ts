import { type AsciiLength, isMostlyAscii } from "../../admission/prompt-bound.ts";
import type { RawJson } from "../../base/json-structure.ts";

export interface ShortenedJson {
	readonly text: string;
	/** Size of the strings that were cut, also of those in repeated members; undefined if nothing was cut. */
	readonly leftOut: AsciiLength | undefined;
}

/** Deepest level in which strings are cut: messages, a message, its parts or calls, a part, its image or function. */
const LEVELS_MAX = 5;
/** Checking one escape takes as long as copying this many characters. */
const CHARS_AN_ESCAPE = 100;
/** A string that begins with this many escapes close together is not cut, because it probably contains many more. */
const ESCAPES_SEEN = 12;
/** After this many consecutive long strings that cannot be cut, no further string is tried. */
const MISFITS_MAX = 8;
/** Minimum factor by which cutting must shrink the text; below it copying the remaining text costs more. */
const WORTH = 2;

/**
 * Returns the JSON text without the long strings of its member `raw` (the messages). These are sent as received, and
 * parsing would mostly copy them. Cuts only strings that are valid JSON, nearly ASCII and without `\u`.
 */
export function shortenTexts(text: string, raw: RawJson | undefined): ShortenedJson {
	if (raw === undefined || raw.levels > LEVELS_MAX) return { text, leftOut: undefined };
	const { longStrings } = raw;
	let kept = "";
	let keptTo = 0;
	let bytes = 0;
	let chars = 0;
	let misfits = 0;
	for (let at = 0; at < longStrings.length && misfits < MISFITS_MAX; at += 2) {
		const from = longStrings[at] as number;
		const to = longStrings[at + 1] as number;
		const string = text.slice(from, to);
		const said = isText(text, from) ? lengthSaid(string) : undefined;
		if (said === undefined) {
			misfits += 1;
			continue;
		}
		misfits = 0;
		kept += text.slice(keptTo, from);
		bytes += said.bytes;
		chars += said.chars;
		keptTo = to;
	}
	if (chars * WORTH < raw.text.length) return { text, leftOut: undefined };
	return { text: kept + text.slice(keptTo), leftOut: { bytes, chars } };
}

/** True if the string is the content of a message or part, not a name, URL or argument. */
function isText(text: string, from: number): boolean {
	return TEXT_NAME.test(text.slice(Math.max(0, from - NAME_CHARS), from));
}

const NAME_CHARS = 16;
const TEXT_NAME = /"(?:content|text)"\s*:\s*"$/;

/** Size of a string that may be cut (valid JSON, nearly ASCII, no `\u`, few escapes); undefined for other strings. */
function lengthSaid(string: string): AsciiLength | undefined {
	const escapesMax = string.length / CHARS_AN_ESCAPE;
	let escapes = 0;
	for (let at = string.indexOf(ESCAPE); at >= 0; at = string.indexOf(ESCAPE, at + 2)) {
		escapes += 1;
		if (escapes > escapesMax || !ESCAPED.includes(string.charAt(at + 1))) return undefined;
		if (escapes === ESCAPES_SEEN && at < (ESCAPES_SEEN * CHARS_AN_ESCAPE) / 2) return undefined;
	}
	const length = { bytes: Buffer.byteLength(string) - escapes, chars: string.length - escapes };
	return isMostlyAscii(length) && !CONTROL.test(string) ? length : undefined;
}

/** The runtime searches for `\p{Cc}` with vector instructions, unlike most character classes. */
const CONTROL = /\p{Cc}/u;
const ESCAPE = "\\";
const ESCAPED = '"\\/bfnrt';
