import { isMostlyAscii, type PlainLength } from "../../admission/prompt-bound.ts";
import type { RawValue } from "../../base/json-structure.ts";

/** A text of which long strings may end early. */
export interface ShortenedJson {
	readonly text: string;
	/** What those that end early said more, of two members of one name both; undefined if none does. */
	readonly leftOut: PlainLength | undefined;
}

/** Messages, one, its parts or calls, one, its image or function. */
const LEVELS_MAX = 5;
/** The first texts, hardly more than those of two messages, keep their beginning: by that conversations are told apart. */
export const BEGINNINGS = 8;
export const BEGINNING_CHARS = 1024;
/** To look at an escape takes as long as to copy a hundred signs. */
const CHARS_AN_ESCAPE = 100;
/** So many close to each other are enough to see that there are many. */
const ESCAPES_SEEN = 12;
/** Long strings in a row of which nothing can be left out: the others are hardly of another kind. */
const MISFITS_MAX = 8;
/** What is left is copied, and what cannot go on as it came is parsed again, whole: less than half left out is not worth that. */
const WORTH = 2;

/**
 * A text without the long texts in its member `raw`, which are messages that may go on as they came: parsing copies them,
 * which is most of what it takes, and most of what it leaves to the collector. Left out are strings with little
 * beyond ASCII and no `\u`, each after a proof that it is one: what is no JSON is none without them.
 */
export function shorten(text: string, raw: RawValue | undefined): ShortenedJson {
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
		if (at < 2 * BEGINNINGS) {
			const beginning = beginningOf(string);
			const parsed = JSON.parse(`"${beginning}"`) as string;
			kept += beginning;
			bytes -= Buffer.byteLength(parsed);
			chars -= parsed.length;
		}
		keptTo = to;
	}
	if (chars * WORTH < raw.text.length) return { text, leftOut: undefined };
	return { text: kept + text.slice(keptTo), leftOut: { bytes, chars } };
}

/** Whether the string that begins here is what a message or a part of it says, and no name, address or argument. */
function isText(text: string, from: number): boolean {
	return TEXT_NAME.test(text.slice(Math.max(0, from - NAME_CHARS), from));
}

const NAME_CHARS = 16;
const TEXT_NAME = /"(?:content|text)"\s*:\s*"$/;

/** What stands between two quotes says so much, if it is a string of JSON, mostly ASCII, without `\u`; undefined also where it has many escapes. */
function lengthSaid(string: string): PlainLength | undefined {
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

/** Searched for by a vector at once, unlike most classes of characters. */
const CONTROL = /\p{Cc}/u;
const ESCAPE = "\\";
const ESCAPED = '"\\/bfnrt';

/** Twice as long, as each character of it may be an escape; none of those is cut. */
function beginningOf(string: string): string {
	let to = 2 * BEGINNING_CHARS;
	while (string.charAt(to - 1) === ESCAPE) to -= 1;
	return string.slice(0, to);
}
