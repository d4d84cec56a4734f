/** Where one member of a JSON object stands in its text, so that a long value can be passed on as it came. */

export interface RawValue {
	readonly text: string;
	/** Names within it, on all levels, repeated ones included. */
	readonly names: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * The value that `JSON.parse(text)[name]` was read from; undefined if there is none. `text` must have been
 * parsed as an object before: nothing is checked here. Of members that share a name the last one counts, as in
 * JSON.parse. Strings, the bulk of a prompt, are leapt over by a native search.
 */
export function rawMemberOf(text: string, name: string): RawValue | undefined {
	const written = JSON.stringify(name);
	let found: RawValue | undefined;
	let at = spaceEnd(text, text.indexOf("{") + 1);
	while (text.charCodeAt(at) === QUOTE) {
		const nameEnd = stringEnd(text, at);
		const member = text.slice(at, nameEnd);
		const from = spaceEnd(text, text.indexOf(":", nameEnd) + 1);
		const { to, names } = valueEnd(text, from);
		// A name may be written with escapes.
		if (member === written || (member.includes("\\") && JSON.parse(member) === name))
			found = { text: text.slice(from, to), names };
		at = spaceEnd(text, spaceEnd(text, to) + 1);
	}
	return found;
}

/** Behind the string whose opening quote is at `from`. */
function stringEnd(text: string, from: number): number {
	for (let quote = text.indexOf('"', from + 1); ; quote = text.indexOf('"', quote + 1)) {
		let escapes = 0;
		while (text.charCodeAt(quote - 1 - escapes) === BACKSLASH) escapes += 1;
		if (escapes % 2 === 0) return quote + 1;
	}
}

const STRUCTURE = /["[\]{}:]/g;
const SCALAR_END = /[\s,}\]]/g;

/** Behind the value that begins at `from`, and the names in it. */
function valueEnd(text: string, from: number): { to: number; names: number } {
	const first = text[from];
	if (first === '"') return { to: stringEnd(text, from), names: 0 };
	if (first !== "{" && first !== "[") return { to: indexFrom(SCALAR_END, text, from), names: 0 };
	let depth = 1;
	let names = 0;
	let at = from + 1;
	while (depth > 0) {
		at = indexFrom(STRUCTURE, text, at);
		const found = text[at];
		if (found === '"') {
			at = stringEnd(text, at);
			continue;
		}
		if (found === ":") names += 1;
		else depth += found === "{" || found === "[" ? 1 : -1;
		at += 1;
	}
	return { to: at, names };
}

function indexFrom(pattern: RegExp, text: string, from: number): number {
	pattern.lastIndex = from;
	pattern.test(text);
	return pattern.lastIndex - 1;
}

function spaceEnd(text: string, from: number): number {
	let at = from;
	while (text.charCodeAt(at) <= 0x20) at += 1;
	return at;
}
