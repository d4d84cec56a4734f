import type { RawValue } from "../../base/json-structure.ts";

/** A parsed text of which long strings may end early. */
export interface ShortenedJson {
	readonly value: unknown;
	/** What those that end early have more in the text, in bytes of what they say, of two members of one name both; 0 if none does. */
	readonly leftOutBytes: number;
}

/** A list of objects, the objects, and nothing within them. */
const LEVELS_MAX = 2;
/** The first strings keep the beginning of what they say: by that conversations are told apart. */
const BEGINNINGS = 2;
export const BEGINNING_CHARS = 1024;
/** To look at an escape takes as long as to copy a hundred signs. */
const CHARS_AN_ESCAPE = 100;

/**
 * Parses a text without a copy of the long strings of its member `raw`, if that is a flat list of objects, which may go on as it
 * came: the copy is most of what parsing takes, and most of what it leaves to the collector. Left out are strings of ASCII
 * without `\u`, each after a proof that it is one: what is no JSON is found as ever. SyntaxError: as JSON.parse.
 */
export function parseShortened(text: string, raw: RawValue | undefined): ShortenedJson {
	if (raw === undefined || raw.levels > LEVELS_MAX) return { value: JSON.parse(text), leftOutBytes: 0 };
	const { longStrings } = raw;
	let kept = "";
	let keptTo = 0;
	let leftOutBytes = 0;
	for (let at = 0; at < longStrings.length; at += 2) {
		const from = longStrings[at] as number;
		const to = longStrings[at + 1] as number;
		const string = text.slice(from, to);
		const escapes = isName(text, to) ? undefined : escapesIn(string);
		// Its neighbours are hardly of another kind.
		if (escapes === undefined) break;
		kept += text.slice(keptTo, from);
		leftOutBytes += string.length - escapes;
		if (at < 2 * BEGINNINGS) {
			const beginning = beginningOf(string);
			kept += beginning;
			leftOutBytes -= (JSON.parse(`"${beginning}"`) as string).length;
		}
		keptTo = to;
	}
	return { value: JSON.parse(kept + text.slice(keptTo)), leftOutBytes };
}

/** Whether the string whose closing quote is here is the name of a member, or may be: behind so much white space nobody looks. */
function isName(text: string, quote: number): boolean {
	const behind = text.slice(quote + 1, quote + 1 + SPACE_CHARS).trimStart();
	return behind === "" || behind.startsWith(":");
}

const SPACE_CHARS = 16;

/** Of what stands between two quotes, if it is ASCII without `\u`, and a string of JSON; undefined also where it has many. */
function escapesIn(string: string): number | undefined {
	if (Buffer.byteLength(string) > string.length || CONTROL.test(string)) return undefined;
	const escapesMax = string.length / CHARS_AN_ESCAPE;
	let escapes = 0;
	for (let at = string.indexOf(ESCAPE); at >= 0; at = string.indexOf(ESCAPE, at + 2)) {
		escapes += 1;
		if (escapes > escapesMax || !ESCAPED.includes(string.charAt(at + 1))) return undefined;
	}
	return escapes;
}

/** Searched for by a vector at once, unlike most classes of characters. */
const CONTROL = /\p{Cc}/u;
const ESCAPE = "\\";
const ESCAPED = '"\\/bfnrt';

/** Twice as long, as each character of it may be an escape; none is cut. */
function beginningOf(string: string): string {
	let to = 2 * BEGINNING_CHARS;
	while (string.charAt(to - 1) === ESCAPE) to -= 1;
	return string.slice(0, to);
}
