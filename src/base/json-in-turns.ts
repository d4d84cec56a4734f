import {
	assertBlank,
	CLOSE_LIST,
	CLOSE_OBJECT,
	COLON,
	COMMA,
	isBlank,
	isUnescapedQuote,
	nextStructuralByte,
	OPEN_LIST,
	OPEN_OBJECT,
	QUOTE,
	quoteAfter,
	splitPositionBefore,
} from "./json-bytes.ts";
import { createTimeSlice, type TimeSlice } from "./time-slice.ts";

const DEPTH_MAX = 128;
/** Maximum number of arrays and objects. With millions, the garbage collector would block the event loop for long. */
const CONTAINERS_MAX = 1_000_000;
/** Maximum number of strings that are values, not names. */
const TEXTS_MAX = 500_000;
/** Maximum number of values in one array. */
const LIST_MAX = 1_000_000;
/** Maximum number of members of one object. */
const MEMBERS_MAX = 100_000;
/** Longest string in bytes, because a string is assembled in one step. */
const TEXT_BYTES_MAX = 48 * 1024 * 1024;

/** Bytes that the parser gets at once, so that a call takes a few milliseconds at most. */
const PIECE_BYTES = 128 * 1024;
/** Structural characters between two checks of the clock. */
const SIGNS_A_LOOK = 64;

/** An unfinished array or object. Large values in it are assembled piece by piece, the others parsed together. */
interface Open {
	readonly isList: boolean;
	/** Position of its opening bracket in the text. */
	readonly from: number;
	restFrom: number;
	/** Position of the last comma between its values; negative before the first one. */
	comma: number;
	commas: number;
	/** True if its last value was large and no comma has followed yet. */
	afterLarge: boolean;
	/** Values parsed so far; undefined as long as the array or object is small. */
	list: unknown[] | undefined;
	members: Record<string, unknown> | undefined;
}

interface Parse {
	readonly bytes: Buffer;
	readonly timeSlice: TimeSlice;
	readonly pieceBytes: number;
	/** Unfinished arrays and objects, innermost last. */
	readonly open: Open[];
	/** The outermost value with its position; undefined if it is small. */
	root: { readonly value: unknown; readonly from: number; readonly to: number } | undefined;
	containers: number;
	/** Number of strings so far that are values. */
	texts: number;
	/** Number of structural characters so far, which decides when the clock is checked. */
	signs: number;
}

/** Work in steps. At each `yield`, other work may run. Throws SyntaxError. */
type Steps<Value> = Generator<undefined, Value>;

/**
 * Like `JSON.parse` for a UTF-8 text, but in steps of a few milliseconds with other work in between. Undefined if the
 * text is not JSON, exceeds the limits above (or has 128 KB of white space in a row), or is `null`.
 */
export async function parseJsonInTurns(
	bytes: Uint8Array,
	pieceBytes = PIECE_BYTES,
	timeSlice = createTimeSlice(),
): Promise<unknown> {
	const steps = parsing({
		bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
		timeSlice,
		pieceBytes,
		open: [],
		root: undefined,
		containers: 0,
		texts: 0,
		signs: 0,
	});
	try {
		for (;;) {
			const { done, value } = steps.next();
			if (done === true) return value ?? undefined;
			await timeSlice.next();
		}
	} catch (error) {
		if (error instanceof SyntaxError) return undefined;
		throw error;
	}
}

function* parsing(parse: Parse): Steps<unknown> {
	const { bytes, timeSlice, open } = parse;
	const { length } = bytes;
	const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
	for (let at = start, since = start; ; since = at) {
		parse.signs += 1;
		// The clock is checked often enough that the parsing between two checks is short.
		if (parse.signs % SIGNS_A_LOOK === 0 && timeSlice.isOver()) yield;
		const sign = nextStructuralByte(bytes, at, Math.min(length, since + parse.pieceBytes));
		if (sign === length) break;
		if (sign - since === parse.pieceBytes) throw new SyntaxError("too much whitespace");
		at = sign + 1;
		switch (bytes[sign]) {
			case QUOTE:
				at = yield* textFrom(parse, sign);
				break;
			case OPEN_LIST:
			case OPEN_OBJECT:
				begin(parse, sign);
				break;
			case CLOSE_LIST:
			case CLOSE_OBJECT:
				end(parse, sign);
				break;
			case COMMA:
				separate(parse, sign);
				break;
			case COLON:
				parse.texts -= 1;
				break;
		}
	}
	if (open.length > 0) throw new SyntaxError("no end");
	const { root } = parse;
	if (root === undefined) {
		if (length > 8 * parse.pieceBytes) throw new SyntaxError("no value");
		return JSON.parse(bytes.toString("utf8", start));
	}
	assertBlank(bytes, start, root.from);
	assertBlank(bytes, root.to, length);
	return root.value;
}

/** Returns the position after the string whose quote is at `from`. Attaches the string if it is large. */
function* textFrom(parse: Parse, from: number): Steps<number> {
	const { bytes, timeSlice } = parse;
	parse.texts += 1;
	if (parse.texts > TEXTS_MAX) throw new SyntaxError("too many strings");
	let quote = quoteAfter(bytes, from + 1);
	while (quote >= 0 && !isUnescapedQuote(bytes, from + 1, quote)) {
		parse.signs += 1;
		if (parse.signs % SIGNS_A_LOOK === 0 && timeSlice.isOver()) yield;
		quote = quoteAfter(bytes, quote + 1);
	}
	if (quote < 0) throw new SyntaxError("an unterminated string");
	if (quote - from <= parse.pieceBytes) return quote + 1;
	if (quote - from > TEXT_BYTES_MAX) throw new SyntaxError("a string that is too long");
	let text = "";
	for (let piece = from + 1; piece < quote; ) {
		const end = splitPositionBefore(bytes, piece, Math.min(piece + parse.pieceBytes, quote), quote);
		text += JSON.parse(`"${bytes.toString("utf8", piece, end)}"`) as string;
		piece = end;
		if (timeSlice.isOver()) yield;
	}
	attach(parse, text, from, quote + 1);
	return quote + 1;
}

function begin({ bytes, open }: Parse, from: number): void {
	if (open.length === DEPTH_MAX) throw new SyntaxError("too deep");
	open.push({
		isList: bytes[from] === OPEN_LIST,
		from,
		restFrom: from + 1,
		comma: -1,
		commas: 0,
		afterLarge: false,
		list: undefined,
		members: undefined,
	});
}

/** Handles a closing bracket: attaches the array or object if it is large. */
function end(parse: Parse, at: number): void {
	const { bytes, open } = parse;
	const ended = open.pop();
	if (ended?.isList !== (bytes[at] === CLOSE_LIST)) throw new SyntaxError("a mismatched bracket");
	parse.containers += 1;
	if (parse.containers > CONTAINERS_MAX) throw new SyntaxError("too many arrays and objects");
	if (ended.list === undefined && ended.members === undefined && at - ended.from < parse.pieceBytes) return;
	if (ended.afterLarge || (ended.comma < 0 && isBlank(bytes, ended.restFrom, at)))
		assertBlank(bytes, ended.restFrom, at);
	else take(parse, ended, at);
	attach(parse, ended.isList ? listOf(ended) : membersOf(ended), ended.from, at + 1);
}

/** Handles a comma: parses the values before it once they are many. */
function separate(parse: Parse, at: number): void {
	const { bytes, open } = parse;
	const into = open.at(-1);
	if (into === undefined) throw new SyntaxError("a comma outside of a value");
	into.commas += 1;
	if (into.commas >= (into.isList ? LIST_MAX : MEMBERS_MAX)) throw new SyntaxError("too many values");
	if (into.afterLarge) {
		assertBlank(bytes, into.restFrom, at);
		into.afterLarge = false;
		into.restFrom = at + 1;
	} else if (at - into.restFrom > parse.pieceBytes) take(parse, into, at);
	into.comma = at;
}

/** Attaches a large value, which ends before `to`, to its array or object. */
function attach(parse: Parse, value: unknown, from: number, to: number): void {
	const into = parse.open.at(-1);
	if (into === undefined) {
		if (parse.root !== undefined) throw new SyntaxError("two values");
		parse.root = { value, from, to };
		return;
	}
	if (into.afterLarge) throw new SyntaxError("a missing comma");
	if (into.comma >= into.restFrom) take(parse, into, into.comma);
	// Parses the text before the large value with an empty string in its place, which also gives the member's name.
	const before = textOf(parse, into.restFrom, from);
	if (into.isList) {
		if ((JSON.parse(`[${before}""]`) as unknown[]).length !== 1) throw new SyntaxError("a missing comma");
		listOf(into).push(value);
	} else {
		const [name, ...others] = Object.keys(JSON.parse(`{${before}""}`) as object);
		if (name === undefined || others.length > 0) throw new SyntaxError("a missing comma");
		define(membersOf(into), name, value);
	}
	into.afterLarge = true;
	into.restFrom = to;
}

/** Parses the values before `to` (a comma or the end), of which there is at least one. */
function take(parse: Parse, into: Open, to: number): void {
	const text = textOf(parse, into.restFrom, to);
	into.restFrom = to + 1;
	if (into.isList) {
		const values = JSON.parse(`[${text}]`) as unknown[];
		if (values.length === 0) throw new SyntaxError("no value");
		const list = listOf(into);
		for (const value of values) list.push(value);
		return;
	}
	const members = Object.entries(JSON.parse(`{${text}}`) as Record<string, unknown>);
	if (members.length === 0) throw new SyntaxError("no member");
	const all = membersOf(into);
	for (const [name, value] of members) define(all, name, value);
}

/** The text between two positions. Throws for a long text without commas, which is invalid. */
function textOf({ bytes, pieceBytes }: Parse, from: number, to: number): string {
	if (to - from > 8 * pieceBytes) throw new SyntaxError("a missing comma");
	return bytes.toString("utf8", from, to);
}

function listOf(open: Open): unknown[] {
	open.list ??= [];
	return open.list;
}

function membersOf(open: Open): Record<string, unknown> {
	open.members ??= {};
	return open.members;
}

/** Sets a member. `__proto__` is an ordinary name here, as in `JSON.parse`. */
function define(members: Record<string, unknown>, name: string, value: unknown): void {
	if (name !== "__proto__") members[name] = value;
	else Object.defineProperty(members, name, { value, writable: true, enumerable: true, configurable: true });
}
