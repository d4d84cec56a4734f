import { Fault } from "./fault.ts";
import { nextTurn } from "./time-slice.ts";

/**
 * Limits of a JSON text's structure. Text is cheap to parse, structure is not: a megabyte of empty objects takes as
 * long as a hundred of prose, and deep nesting overflows a serializer's stack. Within these limits any allowed body is
 * parsed in some hundredths of a second (`test/attack/bodies.test.ts` sends the worst of each).
 */
const DEPTH_MAX = 128;
const NAMES_MAX = 50_000;
const STRINGS_MAX = 100_000;
/** Limit of commas, which separate elements and members. */
const VALUES_MAX = 500_000;
/** Limit of backslashes: text made of escapes is parsed ten times slower. */
const ESCAPES_MAX = 1_000_000;
/** Limit of characters outside of strings: digits, brackets, white space. */
const SIGNS_MAX = 8_000_000;

/** Steps between two turns of the event loop; a step is a character outside of strings, a string or an escape. */
const STEPS_A_TURN = 500_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** An array or object, as written in the text. */
export interface RawValue {
	readonly text: string;
	/** Number of names in it on all levels, repeated ones included. */
	readonly names: number;
	/** Levels of nesting, itself included. */
	readonly levels: number;
	/** Start and end positions of strings longer than `LONG_STRING_CHARS`, without quotes: start, end, start, … */
	readonly longStrings: readonly number[];
	/** False once the parsed value was changed. */
	isCurrent: boolean;
}

/** Length from which scanning a string takes 0.6 of the time of copying it. */
export const LONG_STRING_CHARS = 4 * 1024;

/**
 * Checks a JSON text's structure before it is parsed; invalid JSON is checked up to the position where a parser stops.
 * Fault `invalid_request`, naming the limit. If the text is an object whose `field` is an array or object, returns that
 * member as written, the last one if it is repeated. Undefined if an escaped name could also be `field`.
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

/** An escape has at least two characters, so a short text cannot have too many. */
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
	/** Quotes inside strings, which are escaped. */
	quotes = 0;
	values = 0;
	signs = 0;
	/** Last string on the outermost level: the name of the next value. */
	#nameFrom = 0;
	#nameTo = 0;
	/** Start of the searched array or object, and the number of names before it. */
	#from = 0;
	#namesBefore = 0;
	/** Deepest level inside it, counted from the outermost, and its long strings. */
	deepest = 0;
	#longStrings: number[] | undefined;
	#found: (Omit<RawValue, "text" | "isCurrent"> & { readonly from: number; readonly to: number }) | undefined;
	#isUnsure = false;

	constructor(text: string, field: string | undefined) {
		this.text = text;
		this.#field = field === undefined ? undefined : JSON.stringify(field);
	}

	/** Records the string from `from` to the current position. */
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
/** Scans for one turn; true at the end of the text. A native search skips strings. */
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

/** Position after the string that starts here, or the end of the text if it is unterminated. */
function stringEnd(scan: Scan, length: number): number {
	const { text } = scan;
	for (let quote = text.indexOf('"', scan.at + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
		let before = quote - 1;
		// Backslashes are not counted further back: that many in a row exceed the limit.
		const least = quote - 2 - 2 * ESCAPES_MAX;
		while (before > least && text.charCodeAt(before) === BACKSLASH) before -= 1;
		if (quote - before > 2 * ESCAPES_MAX) throw tooManyEscapes();
		if ((quote - before) % 2 === 1) return quote + 1;
		scan.quotes += 1;
		if (scan.quotes > ESCAPES_MAX) throw tooManyEscapes();
	}
	return length;
}

/** Counts escapes, in turns, since each needs a search. Fault `invalid_request` above the limit. */
async function countEscapes(text: string): Promise<void> {
	let at = -1;
	for (let escapes = 0; escapes <= ESCAPES_MAX; escapes += 1) {
		at = text.indexOf("\\", at + 1);
		if (at < 0) return;
		// Skips the next character, which belongs to the same escape.
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
