import { createTimeSlice } from "./time-slice.ts";

/** Characters of JSON written in one step. */
const PIECE_CHARS = 128 * 1024;
/** Assumed length of a number, and of the punctuation around each value, in characters. */
const VALUE_CHARS = 20;

/**
 * Body of a response: a value as JSON, or a text, complete or in pieces. Long bodies are serialized piece by piece
 * while they are read, so that other requests run in between.
 */
export function chunkedJsonBody(value: object | string | Generator<string>): string | ReadableStream<string> {
	if (typeof value === "string") return value.length <= PIECE_CHARS ? value : streamOf(slicesOf(value));
	if (isGenerator(value)) return piecesInTurns(value);
	return isShort(value) ? JSON.stringify(value) : streamOf(written(value));
}

function isGenerator(value: object): value is Generator<string> {
	return Symbol.iterator in value && !Array.isArray(value);
}

function piecesInTurns(pieces: Generator<string>): string | ReadableStream<string> {
	let text = "";
	while (text.length < PIECE_CHARS) {
		const { done, value } = pieces.next();
		if (done === true) return text;
		text += value;
	}
	return streamOf(chained(text, pieces));
}

function* chained(first: string, others: Generator<string>): Generator<string> {
	yield first;
	yield* others;
}

function streamOf(pieces: Iterator<string>): ReadableStream<string> {
	const timeSlice = createTimeSlice();
	return new ReadableStream<string>(
		{
			async pull(controller) {
				await timeSlice.next();
				let text = "";
				do {
					const { done, value } = pieces.next();
					if (done === true) {
						if (text !== "") controller.enqueue(text);
						controller.close();
						return;
					}
					text += value;
				} while (text.length < PIECE_CHARS && !timeSlice.isOver());
				controller.enqueue(text);
			},
		},
		{ highWaterMark: 1 },
	);
}

function* written(value: unknown): Generator<string> {
	if (isShort(value)) yield JSON.stringify(value) ?? "null";
	else if (typeof value === "string") {
		yield '"';
		for (const slice of slicesOf(value)) yield JSON.stringify(slice).slice(1, -1);
		yield '"';
	} else if (Array.isArray(value)) {
		for (let at = 0; at < value.length; at += 1) {
			yield at === 0 ? "[" : ",";
			yield* written(value[at]);
		}
		yield "]";
	} else {
		let sign = "{";
		for (const [name, member] of Object.entries(value as object)) {
			if (member === undefined) continue;
			yield `${sign}${JSON.stringify(name)}:`;
			yield* written(member);
			sign = ",";
		}
		yield sign === "{" ? "{}" : "}";
	}
}

/** Splits a long text, but not inside a surrogate pair. */
function* slicesOf(text: string): Generator<string> {
	for (let from = 0; from < text.length; ) {
		let to = Math.min(from + PIECE_CHARS, text.length);
		if (to < text.length && (text.charCodeAt(to) & 0xfc00) === 0xdc00) to -= 1;
		yield text.slice(from, to);
		from = to;
	}
}

/** True if the value is short enough to be serialized in one step. */
const isShort = (value: unknown): boolean => charsLeft(value, PIECE_CHARS) >= 0;

/** `chars` minus the length of the value as JSON; stops at the first negative result. */
function charsLeft(value: unknown, chars: number): number {
	let left = chars - VALUE_CHARS;
	if (typeof value === "string") return left - value.length;
	if (typeof value !== "object" || value === null) return left;
	if (Array.isArray(value)) {
		for (let at = 0; at < value.length && left >= 0; at += 1) left = charsLeft(value[at], left);
		return left;
	}
	for (const name in value) {
		left = charsLeft((value as Record<string, unknown>)[name], left - name.length);
		if (left < 0) break;
	}
	return left;
}
