import type { PlainLength } from "../../admission/prompt-bound.ts";
import { assert } from "../../base/assert.ts";
import { parseExactly } from "../../base/exact-json.ts";
import { Fault } from "../../base/fault.ts";
import { checkStructure, type RawValue, type Structure } from "../../base/json-structure.ts";
import { createTimeSlice, type TimeSlice } from "../../base/time-slice.ts";
import type { Connection } from "../connection.ts";
import { EXACT_NUMBERS, type WithExactNumbers } from "../exact-numbers.ts";
import { type BodyReads, madeInTime } from "./body-reads.ts";
import { bytesOf, declaredBytes, TAKES_ANY, type TakesBytes } from "./bytes-body.ts";
import { shorten } from "./shortened-json.ts";

/** Deadline of a body, even if it keeps arriving. */
const READ_DEADLINE_MS = 60_000;
/** Longer texts are checked, parsed, measured and sent in time slices. */
const LONG_CHARS = 256 * 1024;
/** From this length on, finding a field in the text costs less than serializing it. */
export const RAW_CHARS_MIN = 16 * 1024;
/** Length of a time slice. A megabyte usually needs only one: values that survive a yield outlive young collections. */
const TURN_MS = 2;
/** Largest body that the runtime decodes in one step, within a millisecond or two. */
const ONE_STEP_BYTES = 4 * 1024 * 1024;

export interface JsonBody {
	readonly value: Record<string, unknown>;
	readonly raw: RawValue | undefined;
	/** Size of the text cut from strings of the requested field in `value`; undefined if none was. `raw` has all. */
	readonly leftOut: PlainLength | undefined;
	readonly timeSlice: TimeSlice | undefined;
}

/**
 * Reads a JSON object of at most `bytesMax` bytes. `bytes`: the body if it was already read. `field`: an array or
 * object whose raw text is returned too, unless the body is short; long strings in its value may be cut. Faults:
 * unsupported_media_type, payload_too_large, request_timeout, invalid_request.
 */
export function readJson(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: TakesBytes = TAKES_ANY,
	bytes?: Uint8Array<ArrayBuffer>,
	field?: string,
): Promise<JsonBody> {
	// Not async, which would cost small bodies another promise.
	try {
		assertJsonType(connection.request);
		if (bytes !== undefined) return decodedBody(Promise.resolve(bytes), field);
		return readBody(connection, bytesMax, reads, takes, field);
	} catch (error) {
		return Promise.reject(error);
	}
}

function assertJsonType(request: Request): void {
	const type = request.headers.get("content-type");
	if (type !== null && !/^application\/(?:[\w.+-]+\+)?json\b/i.test(type)) {
		throw new Fault(
			"unsupported_media_type",
			"The request body must be JSON. Set the header `content-type: application/json`.",
		);
	}
}

function readBody(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: TakesBytes,
	field: string | undefined,
): Promise<JsonBody> {
	const { request } = connection;
	const declared = declaredBytes(request, bytesMax, takes);
	// Reading a body at once costs less than streaming it.
	if (declared !== null ? declared <= ONE_STEP_BYTES : request.body === null)
		return madeInTime(reads, READ_DEADLINE_MS, new TextReading(connection, field));
	const bytes = bytesOf(connection, declared, { bytesMax, reads, takes, deadlineMs: READ_DEADLINE_MS });
	return decodedBody(bytes, field);
}

/** A separate function, so that a small body allocates no closure. */
async function decodedBody(reading: Promise<Uint8Array<ArrayBuffer>>, field: string | undefined): Promise<JsonBody> {
	return bodyOf(await decoded(reading), field);
}

/** A class, because there is one per request. */
class TextReading {
	readonly connection: Connection;
	readonly reading: Promise<string>;
	readonly #field: string | undefined;

	constructor(connection: Connection, field: string | undefined) {
		this.connection = connection;
		this.reading = connection.request.text();
		this.#field = field;
	}

	make(text: string): JsonBody | Promise<JsonBody> {
		return bodyOf(text, this.#field);
	}
}

/** Returns a promise only for a text that may take several time slices. */
function bodyOf(text: string, field: string | undefined): JsonBody | Promise<JsonBody> {
	if (text.length >= LONG_CHARS) return longBodyOf(text, field);
	const checked = checkStructure(text, text.length < RAW_CHARS_MIN ? undefined : field);
	assert(!(checked instanceof Promise), "a short text is looked through in one turn");
	const raw = checked.field();
	const short = shorten(text, raw);
	const value = parseObject(short.text);
	keepDigits(value, checked, short.leftOut === undefined ? undefined : field);
	return { value, raw, leftOut: short.leftOut, timeSlice: undefined };
}

async function longBodyOf(text: string, field: string | undefined): Promise<JsonBody> {
	const timeSlice = createTimeSlice(TURN_MS);
	const checked = checkStructure(text, field);
	const structure = checked instanceof Promise ? await checked : checked;
	const raw = structure.field();
	if (timeSlice.isOver()) await timeSlice.next();
	// Shortening is useless if everything must be parsed anyway.
	const short = shorten(text, raw);
	if (timeSlice.isOver()) await timeSlice.next();
	const value = parseObject(short.text);
	keepDigits(value, structure, short.leftOut === undefined ? undefined : field);
	if (timeSlice.isOver()) await timeSlice.next();
	return { value, raw, leftOut: short.leftOut, timeSlice };
}

function parseObject(text: string): Record<string, unknown> {
	const value = parseJson(text);
	if (typeof value !== "object" || value === null || Array.isArray(value))
		throw new Fault("invalid_request", "The request body must be a JSON object.");
	return value as Record<string, unknown>;
}

/** Parses members with integers beyond 2^53 again, without loss. `except`: a member that was cut. */
function keepDigits(value: Record<string, unknown>, { exact }: Structure, except: string | undefined): void {
	if (exact === undefined) return;
	const numbers: Record<string, unknown> = Object.create(null);
	for (const [written, text] of exact) {
		const name = JSON.parse(written) as string;
		if (name === except) continue;
		// A field that the gateway checks is a number; `seed` and unknown ones are sent as written.
		(typeof value[name] === "number" ? numbers : value)[name] = parseExactly(text, name.slice(0, 64));
	}
	(value as WithExactNumbers)[EXACT_NUMBERS] = numbers;
}

function parseJson(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch (cause) {
		if (PACKED.some((beginning) => text.startsWith(beginning)))
			throw new Fault(
				"unsupported_media_type",
				"Compressed request bodies are not supported. Send the body without `content-encoding`.",
			);
		throw new Fault("invalid_request", "The request body is not valid JSON.", { cause });
	}
}

/** First bytes of gzip and zstd, decoded as text. */
const PACKED = ["\u001f\ufffd", "(\ufffd/\ufffd"] as const;

/** Decodes in slices, because text beyond ASCII takes up to half a millisecond per megabyte. */
async function decoded(reading: Promise<Uint8Array<ArrayBuffer>>): Promise<string> {
	const bytes = await reading;
	const timeSlice = createTimeSlice();
	const slices: string[] = [];
	for (let from = 0; from < bytes.length; ) {
		let to = Math.min(from + LONG_CHARS, bytes.length);
		// Does not cut inside a character, which has at most three continuation bytes.
		for (let back = 0; back < 3 && ((bytes[to] ?? 0) & 0xc0) === 0x80; back += 1) to -= 1;
		slices.push(new TextDecoder("utf-8", { ignoreBOM: from > 0 }).decode(bytes.subarray(from, to)));
		from = to;
		if (timeSlice.isOver()) await timeSlice.next();
	}
	const [text, ...others] = slices;
	if (text === undefined || others.length === 0) return text ?? "";
	await timeSlice.next();
	return slices.join("");
}
