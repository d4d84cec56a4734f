import { Fault } from "./fault.ts";
import { nextTurn } from "./time-slice.ts";

/**
 * Limits for a parser's input. Long text is cheap to parse and structure is not: a megabyte of empty objects takes as
 * long as a hundred of prose, and nested brackets take a serializer's stack. With these limits a body of any allowed
 * size is parsed in some hundredths of a second (`test/attack/bodies.test.ts` sends the worst of each).
 */
const DEPTH_MAX = 128;
const NAMES_MAX = 50_000;
const STRINGS_MAX = 100_000;
/** Commas: elements of arrays and members of objects. */
const VALUES_MAX = 500_000;
/** Backslashes: text that consists of escapes is parsed ten times slower than other text. */
const ESCAPES_MAX = 1_000_000;
/** Characters outside of strings: digits, brackets, white space. */
const SIGNS_MAX = 8_000_000;

/** Steps between two turns for other work; a step is a character outside of strings, a string or an escape. */
const STEPS_A_TURN = 500_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** A list or an object as written in a text. */
export interface RawValue {
	readonly text: string;
	/** Names within it, on all levels, repeated ones included. */
	readonly names: number;
	/** Nesting levels of lists and objects, including itself. */
	readonly levels: number;
	/** Positions of strings over `LONG_STRING_CHARS` in the whole text, without their quotes: begin, end, begin, … */
	readonly longStrings: readonly number[];
	/** False once the parsed value was changed. */
	isCurrent: boolean;
}

/** Scanning a string from this length on takes 0.6 of the time of a copy. */
export const LONG_STRING_CHARS = 4 * 1024;

/**
 * Checks the structure of a JSON text before it is parsed. Invalid JSON is bounded too, up to the position where a
 * parser would give up. Fault `invalid_request`, naming the bound. If the text is an object whose `field` is a list or
 * an object, returns that member as written; the last one of repeated names, like JSON.parse. Undefined if a name with
 * escapes could also be it.
 */
export function checkStructure(text: string, field?: string): RawValue | undefined | Promise<RawValue | undefined> {
	const scan = new Scan(text, field);
	if (walk(scan) && !mayHaveTooManyEscapes(text)) return scan.found();
	return goOn(scan);
}

async function goOn(scan: Scan): Promise<RawValue | undefined> {
	const { text } = scan;
	while (scan.at < text.length) {
		await nextTurn();
		walk(scan);
	}
	if (mayHaveTooManyEscapes(text)) await countEscapes(text);
	return scan.found();
}

/** Each takes two characters at least. */
function mayHaveTooManyEscapes(text: string): boolean {
	return text.length > 2 * ESCAPES_MAX;
}

class Scan {
	readonly text: string;
	readonly #field: string | undefined;
	at = 0;
	depth = 0;
	names = 0;
	strings = 0;
	/** Quotes within strings. */
	quotes = 0;
	values = 0;
	signs = 0;
	/** The last string on the outermost level: the name of the value that follows. */
	#nameFrom = 0;
	#nameTo = 0;
	/** Start of the list or object that belongs to it, and the names before. */
	#from = 0;
	#namesBefore = 0;
	/** The deepest level within it, including those around it, and its long strings. */
	deepest = 0;
	#longStrings: number[] | undefined;
	#found: (Omit<RawValue, "text" | "isCurrent"> & { readonly from: number; readonly to: number }) | undefined;
	#isUnsure = false;

	constructor(text: string, field: string | undefined) {
		this.text = text;
		this.#field = field === undefined ? undefined : JSON.stringify(field);
	}

	/** A string from `from` to here has ended. */
	stringFrom(from: number): void {
		if (this.depth === 1) {
			this.#nameFrom = from;
			this.#nameTo = this.at;
		} else if (this.at - from > LONG_STRING_CHARS && this.#field !== undefined) {
			this.#longStrings ??= [];
			this.#longStrings.push(from + 1, this.at - 1);
		}
	}

	memberBegins(): void {
		this.#from = this.at;
		this.#namesBefore = this.names;
		this.deepest = 0;
		this.#longStrings = undefined;
	}

	memberEnds(): void {
		if (this.#field === undefined) return;
		const name = this.text.slice(this.#nameFrom, this.#nameTo);
		if (name === this.#field)
			this.#found = {
				from: this.#from,
				to: this.at + 1,
				names: this.names - this.#namesBefore,
				levels: this.deepest - 1,
				longStrings: this.#longStrings ?? [],
			};
		else if (name.includes("\\")) this.#isUnsure = true;
	}

	found(): RawValue | undefined {
		if (this.#found === undefined || this.#isUnsure) return undefined;
		const { from, to, ...found } = this.#found;
		return { text: this.text.slice(from, to), ...found, isCurrent: true };
	}
}
/** Continues for one turn; true at the end of the text. A native search skips strings. */
function walk(scan: Scan): boolean {
	const { text } = scan;
	const { length } = text;
	for (let steps = 0; steps < STEPS_A_TURN; steps += 1) {
		if (scan.at >= length) return true;
		switch (text.charCodeAt(scan.at)) {
			case QUOTE: {
				const from = scan.at;
				scan.at = stringEnd(scan, length);
				scan.stringFrom(from);
				scan.strings += 1;
				if (scan.strings > STRINGS_MAX) throw tooMuch(`more than ${STRINGS_MAX} strings`);
				continue;
			}
			case 0x7b: // {
			case 0x5b: // [
				if (scan.depth === 1) scan.memberBegins();
				scan.depth += 1;
				if (scan.depth > scan.deepest) scan.deepest = scan.depth;
				if (scan.depth > DEPTH_MAX) throw tooMuch(`nesting of more than ${DEPTH_MAX} levels`);
				break;
			case 0x7d: // }
			case 0x5d: // ]
				scan.depth -= 1;
				if (scan.depth === 1) scan.memberEnds();
				break;
			case 0x3a: // :
				scan.names += 1;
				if (scan.names > NAMES_MAX) throw tooMuch(`more than ${NAMES_MAX} names`);
				break;
			case 0x2c: // ,
				scan.values += 1;
				if (scan.values > VALUES_MAX) throw tooMuch(`more than ${VALUES_MAX} values`);
				break;
		}
		scan.at += 1;
		scan.signs += 1;
		if (scan.signs > SIGNS_MAX) throw tooMuch(`more than ${SIGNS_MAX} signs outside of strings`);
	}
	return scan.at >= length;
}

/** The position after the string that begins here, or the end of an unterminated text. Quotes in it are escapes. */
function stringEnd(scan: Scan, length: number): number {
	const { text } = scan;
	for (let quote = text.indexOf('"', scan.at + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
		let before = quote - 1;
		// More backslashes in a row exceed the limit, and are not counted to their beginning.
		const least = quote - 2 - 2 * ESCAPES_MAX;
		while (before > least && text.charCodeAt(before) === BACKSLASH) before -= 1;
		if (quote - before > 2 * ESCAPES_MAX) throw tooManyEscapes();
		if ((quote - before) % 2 === 1) return quote + 1;
		scan.quotes += 1;
		if (scan.quotes > ESCAPES_MAX) throw tooManyEscapes();
	}
	return length;
}

/** Fault `invalid_request`. Also in turns: each escape needs a search of its own. */
async function countEscapes(text: string): Promise<void> {
	let at = -1;
	for (let escapes = 0; escapes <= ESCAPES_MAX; escapes += 1) {
		at = text.indexOf("\\", at + 1);
		if (at < 0) return;
		// The character after it is part of the same escape.
		at += 1;
		if (escapes % STEPS_A_TURN === STEPS_A_TURN - 1) await nextTurn();
	}
	throw tooManyEscapes();
}

function tooManyEscapes(): Fault {
	return tooMuch(`more than ${ESCAPES_MAX} escapes in its strings`);
}

function tooMuch(what: string): Fault {
	return new Fault("invalid_request", "The body has {what}.", { values: { what } });
}
