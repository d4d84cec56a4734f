import { Fault } from "./fault.ts";
import { decodedName, ELEMENTS_MIN, elementsLimit, type ListBounds, tooManyElementsFault } from "./json-list-bounds.ts";
import { JsonParts } from "./json-parts.ts";
import { createTimeSlice, type TimeSlice } from "./time-slice.ts";

/**
 * Limits of a JSON text's structure. A parser needs much longer for structure than for text: a megabyte of empty
 * objects takes as long as a hundred of prose. Deep nesting overflows a serializer's stack. Within these limits, any
 * allowed body is parsed in some hundredths of a second (`test/attack/bodies.test.ts` sends the worst of each).
 */
const DEPTH_MAX = 128;
const NAMES_MAX = 50_000;
const OUTERMOST_NAMES_MAX = 1_000;
const STRINGS_MAX = 100_000;
/** Maximum number of commas, which separate elements and members. */
const VALUES_MAX = 500_000;
/** Maximum number of values in members that contain an integer beyond 2^53, because such members are parsed slowly. */
const EXACT_VALUES_MAX = 5_000;
/** Maximum characters of a number, because a number is read in one step. */
const NUMBER_CHARS_MAX = 1_000;
/** An integer with at most this many digits is below 2^53. */
const SAFE_DIGITS = 15;
/** Maximum number of backslashes, because a text of escapes is parsed ten times more slowly. */
const ESCAPES_MAX = 1_000_000;
/** Maximum characters outside strings, such as digits, brackets and white space. */
const SIGNS_MAX = 8_000_000;

/** Steps before other work may run. A step is one character outside strings, one string, or one escape. */
const STEPS_A_TURN = 200_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Position and size of an array or object as it is written in the text. */
export interface RawJson {
	readonly text: string;
	/** Number of member names in it on all levels. A repeated name counts each time. */
	readonly names: number;
	/** Levels of nesting, including its own. */
	readonly levels: number;
	/** Start and end of each string longer than `LONG_STRING_CHARS`, without its quotes: start, end, start, … */
	readonly longStrings: readonly number[];
	/** True if it contains numbers that no double represents. */
	readonly isExact: boolean;
	/** False once the parsed value was changed, because the text then differs from the value. */
	isCurrent: boolean;
}

/** Length from which measuring a string in place is worth it: that takes 0.6 of the time of copying the string. */
export const LONG_STRING_CHARS = 4 * 1024;

export interface JsonStructure extends Pick<JsonParts, "parts" | "parsedBytes"> {
	/**
	 * The member `field` as it is written, if the text is an object and the member an array or object. Of repeated names
	 * the last counts, as in JSON.parse. Undefined if a name with escapes might be the same name.
	 */
	field(): RawJson | undefined;
	/** Values as written of the outermost members with numbers that no double represents, by member name. */
	readonly exact: ReadonlyMap<string, string> | undefined;
}

/**
 * Checks the structure of a JSON text before it is parsed. Invalid JSON is checked up to where a parser would stop.
 * Fault `invalid_request`, which names the exceeded limit.
 */
export function checkJsonStructure(
	text: string,
	field?: string,
	/** Bounds of the elements of the outermost members. */
	lists?: ListBounds,
	timeSlice?: TimeSlice,
): JsonStructure | Promise<JsonStructure> {
	const scan = new Scan(text, field, lists);
	if (walk(scan) && !mayHaveTooManyEscapes(text)) return scan;
	return goOn(scan, timeSlice ?? createTimeSlice());
}

async function goOn(scan: Scan, timeSlice: TimeSlice): Promise<JsonStructure> {
	const { text } = scan;
	while (scan.at < text.length) {
		await timeSlice.next();
		walk(scan);
	}
	if (mayHaveTooManyEscapes(text)) await countEscapes(text, timeSlice);
	return scan;
}

/** False for a short text, which cannot have too many escapes, because an escape has at least two characters. */
function mayHaveTooManyEscapes(text: string): boolean {
	return text.length > 2 * ESCAPES_MAX;
}

class Scan extends JsonParts implements JsonStructure {
	readonly #field: string | undefined;
	at = 0;
	depth = 0;
	#outermost = 0;
	lastString = 0;
	/** Number of escaped quotes in strings so far. */
	quotes = 0;
	signs = 0;
	/** Last string on the outermost level, which is the name of the next value. */
	#nameFrom = 0;
	#nameTo = 0;
	/** Start of the array or object that is searched for, and the number of names before it. */
	#from = 0;
	#namesBefore = 0;
	/** Deepest level in that array or object, counted from the outermost level, and its long strings. */
	deepest = 0;
	#longStrings: number[] | undefined;
	readonly #lists: ListBounds | undefined;
	/** Elements of the current outermost member, and how many more may follow before its bound is looked up. */
	elements = 0;
	elementsUnchecked = Number.POSITIVE_INFINITY;
	#found: (Omit<RawJson, "text" | "isCurrent"> & { readonly from: number; readonly to: number }) | undefined;
	#isUnsure = false;
	#valuesBefore = 0;
	#isExact = false;
	#exactValues = 0;
	exact: Map<string, string> | undefined;

	constructor(text: string, field: string | undefined, lists: ListBounds | undefined) {
		super(text);
		this.#lists = lists;
		this.#field = field === undefined ? undefined : JSON.stringify(field);
	}

	/** Records the string that starts at `from` and ends at the current position. */
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
		this.#valuesBefore = this.values;
		this.#isExact = false;
		this.deepest = 0;
		this.#longStrings = undefined;
		this.elements = 1;
		// Looks the bound up only when a list exceeds the lowest possible bound, because most lists are shorter.
		if (this.#lists !== undefined) this.elementsUnchecked = ELEMENTS_MIN;
	}

	checkElements(): void {
		this.elementsUnchecked = elementsLimit(this.name(), this.#lists);
		if (this.elements > this.elementsUnchecked) throw tooManyElementsFault(this.name(), this.#lists);
	}

	/** Call it after a member's name. Forgets the result for an earlier member of the same name. */
	nameEnds(): void {
		if (this.#outermost++ === OUTERMOST_NAMES_MAX) throw tooMuch(`more than ${OUTERMOST_NAMES_MAX} outermost names`);
		this.exact?.delete(decodedName(this.name()));
	}

	name(): string {
		return this.text.slice(this.#nameFrom, this.#nameTo);
	}

	/** Records a number that a double may not represent. */
	longNumber(from: number, to: number, isWhole: boolean): void {
		const written = this.text.slice(this.text.charCodeAt(from - 1) === MINUS ? from - 1 : from, to);
		const value = Number(written);
		if (Number.isSafeInteger(value) || (Number.isFinite(value) && !isWhole)) return;
		if (this.depth === 1) this.#noteExact(written);
		else this.#isExact = true;
	}

	#noteExact(written: string): void {
		this.exact ??= new Map();
		this.exact.set(decodedName(this.name()), written);
	}

	memberEnds(): void {
		if (this.#isExact) {
			this.#exactValues += this.values - this.#valuesBefore;
			if (this.#exactValues > EXACT_VALUES_MAX)
				throw tooMuch(`integers beyond 2^53 among more than ${EXACT_VALUES_MAX} values`);
			this.#noteExact(this.text.slice(this.#from, this.at + 1));
		}
		if (this.#field === undefined) return;
		const name = this.name();
		if (name === this.#field)
			this.#found = {
				from: this.#from,
				to: this.at + 1,
				names: this.names - this.#namesBefore,
				levels: this.deepest - 1,
				longStrings: this.#longStrings ?? [],
				isExact: this.#isExact,
			};
		else if (name.includes("\\")) this.#isUnsure = true;
	}

	field(): RawJson | undefined {
		if (this.#found === undefined || this.#isUnsure) return undefined;
		const { from, to, ...found } = this.#found;
		return { text: this.text.slice(from, to), ...found, isCurrent: true };
	}
}
/** Scans for one time slice; true at the end of the text. A native search skips the contents of strings. */
function walk(scan: Scan): boolean {
	const { text } = scan;
	for (let steps = 0; steps < STEPS_A_TURN; steps += 1) {
		if (scan.at >= text.length) return true;
		const sign = text.charCodeAt(scan.at);
		switch (sign) {
			case QUOTE:
				scan.lastString = scan.at;
				scan.at = stringEnd(scan);
				scan.stringFrom(scan.lastString);
				scan.strings += 1;
				if (scan.strings > STRINGS_MAX) throw tooMuch(`more than ${STRINGS_MAX} strings`);
				continue;
			case 0x7b: // {
			case 0x5b: // [
				if (scan.depth === 1) scan.memberBegins();
				scan.depth += 1;
				scan.containers += 1;
				scan.isIndexed = false;
				if (scan.depth > scan.deepest) scan.deepest = scan.depth;
				if (scan.depth > DEPTH_MAX) throw tooMuch(`nesting of more than ${DEPTH_MAX} levels`);
				break;
			case 0x7d: // }
			case 0x5d: // ]
				scan.depth -= 1;
				scan.isIndexed = false;
				if (scan.depth === 1) scan.memberEnds();
				break;
			case 0x3a: // :
				scan.names += 1;
				scan.countName(scan.lastString);
				if (scan.depth === 1) scan.nameEnds();
				if (scan.names > NAMES_MAX) throw tooMuch(`more than ${NAMES_MAX} names`);
				break;
			case 0x2c: // ,
				scan.values += 1;
				if (scan.values > VALUES_MAX) throw tooMuch(`more than ${VALUES_MAX} values`);
				if (scan.depth === 2) {
					scan.elements += 1;
					if (scan.elements > scan.elementsUnchecked) scan.checkElements();
				}
				break;
			default:
				if (isDigit(sign)) steps += passNumber(scan) >> 3;
		}
		scan.at += 1;
		scan.signs += 1;
		if (scan.signs > SIGNS_MAX) throw tooMuch(`more than ${SIGNS_MAX} signs outside of strings`);
	}
	return scan.at >= text.length;
}

const PLUS = 0x2b;
const MINUS = 0x2d;
const DOT = 0x2e;
const EXPONENT = 0x65;

function isDigit(sign: number): boolean {
	return sign >= 0x30 && sign <= 0x39;
}

/** Moves to the last character of the number that starts here. Returns the number of characters passed. */
function passNumber(scan: Scan): number {
	const { text, at: from } = scan;
	let to = from + 1;
	while (isDigit(text.charCodeAt(to)) && to - from < NUMBER_CHARS_MAX) to += 1;
	const wholeDigits = to - from;
	let hasExponent = false;
	for (let sign = text.charCodeAt(to); to - from < NUMBER_CHARS_MAX; sign = text.charCodeAt(to)) {
		const isExponent = (sign | 0x20) === EXPONENT;
		hasExponent ||= isExponent;
		if (!isDigit(sign) && !isExponent && sign !== DOT && sign !== PLUS && sign !== MINUS) break;
		to += 1;
	}
	if (to - from >= NUMBER_CHARS_MAX) throw tooMuch(`a number of ${NUMBER_CHARS_MAX} or more characters`);
	scan.at = to - 1;
	scan.signs += to - from - 1;
	if (wholeDigits > SAFE_DIGITS || hasExponent) scan.longNumber(from, to, to - from === wholeDigits);
	return to - from;
}

/** Returns the position after the string that starts here; the end of the text if the string does not end. */
function stringEnd(scan: Scan): number {
	const { text } = scan;
	for (let quote = text.indexOf('"', scan.at + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
		let before = quote - 1;
		// Looks back no further, because more backslashes in a row exceed the limit anyway.
		const least = quote - 2 - 2 * ESCAPES_MAX;
		while (before > least && text.charCodeAt(before) === BACKSLASH) before -= 1;
		if (quote - before > 2 * ESCAPES_MAX) throw tooManyEscapes();
		if ((quote - before) % 2 === 1) return quote + 1;
		scan.quotes += 1;
		if (scan.quotes > ESCAPES_MAX) throw tooManyEscapes();
	}
	return text.length;
}

/** Counts escapes in time slices, because each escape needs a search. Fault `invalid_request` above the limit. */
async function countEscapes(text: string, timeSlice: TimeSlice): Promise<void> {
	let at = -1;
	for (let escapes = 0; escapes <= ESCAPES_MAX; escapes += 1) {
		at = text.indexOf("\\", at + 1);
		if (at < 0) return;
		// Skips the character after the backslash, which belongs to the same escape.
		at += 1;
		if (escapes % STEPS_A_TURN === STEPS_A_TURN - 1) await timeSlice.next();
	}
	throw tooManyEscapes();
}

const tooManyEscapes = () => tooMuch(`more than ${ESCAPES_MAX} escapes in its strings`);

function tooMuch(what: string): Fault {
	return new Fault("invalid_request", "The body has {what}.", { values: { what } });
}
