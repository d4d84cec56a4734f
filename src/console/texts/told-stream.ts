import { ENGLISH, type Language } from "../../base/language.ts";
import type { Passing } from "../../base/passed-body.ts";
import { BODY_CHARS_MAX, textIn } from "./told-in.ts";

/** What a failure begins with in a stream of the gateway. */
const FAILURE = 'data: {"error":';
const DATA = "data: ";
/** Lines with their ends, and what has none yet. */
const PIECES = /[^\n]*\n|[^\n]+$/g;

/**
 * What fails in a chat after its first byte comes as an event, whose message is put into the reader's language; all else
 * passes as it is. A line is held back only while it may still be such an event, and no longer than one is. What begins
 * like one in the middle of a line would be no JSON: its quotes would be escaped.
 */
export function failuresIn(language: Language): Passing | undefined {
	if (language === ENGLISH) return undefined;
	const decoder = new TextDecoder();
	const encoder = new TextEncoder();
	/** The beginning of a line that may be a failure. */
	let held = "";

	function told(text: string): string {
		let out = "";
		for (const piece of text.match(PIECES) ?? []) {
			const line = held + piece;
			const isWhole = line.endsWith("\n");
			const mayFail = line.startsWith(FAILURE) || FAILURE.startsWith(line);
			held = mayFail && !isWhole && line.length <= BODY_CHARS_MAX ? line : "";
			if (held === "") out += mayFail && isWhole ? `${DATA}${textIn(language, line.slice(DATA.length, -1))}\n` : line;
		}
		return out;
	}

	return {
		pass: (piece) => encoder.encode(told(typeof piece === "string" ? piece : decoder.decode(piece, { stream: true }))),
		end: () => encoder.encode(held + told(decoder.decode())),
	};
}
