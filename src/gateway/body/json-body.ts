import type { TObject } from "@sinclair/typebox";
import type { AsciiLength } from "../../admission/prompt-bound.ts";
import { assert } from "../../base/assert.ts";
import { parseExactly } from "../../base/exact-json.ts";
import { Fault } from "../../base/fault.ts";
import { parseJsonInTurns } from "../../base/json-in-turns.ts";
import type { ListBounds } from "../../base/json-list-bounds.ts";
import { checkJsonStructure, type JsonStructure, type RawJson } from "../../base/json-structure.ts";
import { createTimeSlice, runInTurn, type TimeSlice } from "../../base/time-slice.ts";
import { type Connection, SMALL_BODY_BYTES } from "../connection.ts";
import { EXACT_NUMBERS, type WithExactNumbers } from "../exact-numbers.ts";
import { unionVariants } from "./body-problem.ts";
import { type BodyReads, makeBeforeDeadline } from "./body-reads.ts";
import { assertDeclared, assertNotCompressed, type ByteCounter, readPieces, UNLIMITED_BYTES } from "./bytes-body.ts";
import { shortenTexts } from "./shortened-json.ts";

/** A body must have arrived completely within this time, even if bytes keep arriving. */
const READ_DEADLINE_MS = 60_000;
/** Texts of at least this length, or with many values, are parsed in time slices, between which other requests run. */
const LONG_CHARS = 192 * 1024;
/** Texts below this length are parsed without reading the clock. */
const SHORT_CHARS = 4 * 1024;
/** Texts with more values and names than this are parsed in pieces; below it parsing takes at most two milliseconds. */
const PARTS_A_STEP = 5_000;
/** Bytes decoded in one step. Decoding a megabyte of text beyond ASCII takes up to half a millisecond. */
const DECODED_BYTES = 1024 * 1024;
/** From this length on, locating a field's raw text costs less than serializing the parsed value again. */
export const RAW_FIELD_CHARS_MIN = 16 * 1024;
/** Milliseconds of a time slice. A megabyte fits into one: values that survive a pause cost more garbage collection. */
const TURN_MS = 2;
/** Bodies up to this length are read in one step, which costs a third of streaming them. */
const ONE_STEP_BYTES = 256 * 1024;
/** Bodies up to this length are read in one step while few are: streaming costs half as much CPU time again. */
const WHOLE_BYTES = 4 * 1024 * 1024;

export interface JsonBody {
	readonly value: Record<string, unknown>;
	readonly raw: RawJson | undefined;
	/** Size of the strings cut from the field `BodyForm.field`; undefined if none were cut. `raw` has the whole text. */
	readonly leftOut: AsciiLength | undefined;
	readonly timeSlice: TimeSlice | undefined;
}

/**
 * Reads a JSON object of at most `bytesMax` bytes, or parses `bytes` if the body was already read. Faults:
 * unsupported_media_type, payload_too_large, request_timeout, invalid_request.
 */
export function readJson(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: ByteCounter = UNLIMITED_BYTES,
	bytes?: Uint8Array<ArrayBuffer>,
	form = ANY_FORM,
): Promise<JsonBody> {
	// Not an async function, which would cost small bodies another promise.
	try {
		assertJsonType(connection.request);
		if (bytes !== undefined) return decodedBody(Promise.resolve(piecesOf(bytes)), takes, form);
		return readBody(connection, bytesMax, reads, takes, form);
	} catch (error) {
		return Promise.reject(error);
	}
}

/** Returns a reader for bodies of this schema, which checks list lengths before parsing. `field`: see `BodyForm`. */
export function jsonReader(schema: TObject, field?: string): typeof readJson {
	const form = { field, lists: listBounds(schema) };
	return (connection, bytesMax, reads, takes, bytes) => readJson(connection, bytesMax, reads, takes, bytes, form);
}

/** The maximum length of each list and map of the schema. */
function listBounds({ properties }: TObject): ListBounds {
	return new Map(
		Object.entries(properties).flatMap(([name, property]) => {
			const forms = unionVariants(property).filter(({ type }) => type === "array" || type === "object");
			const most = forms.map(({ maxItems, maxProperties }) => maxItems ?? maxProperties ?? Number.POSITIVE_INFINITY);
			return most.length > 0 ? [[name, Math.max(...most)]] : [];
		}),
	);
}

interface BodyForm {
	/** Array or object whose raw text is also returned if it is long. Strings may be cut from its parsed value. */
	readonly field?: string | undefined;
	readonly lists?: ListBounds;
}

const ANY_FORM: BodyForm = {};

function assertJsonType(request: Request): void {
	assertNotCompressed(request.headers);
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
	takes: ByteCounter,
	form: BodyForm,
): Promise<JsonBody> {
	const { request } = connection;
	const declared = assertDeclared(request, bytesMax);
	if (declared !== null ? declared <= ONE_STEP_BYTES : request.body === null)
		return makeBeforeDeadline(reads, READ_DEADLINE_MS, new TextReading(connection, declared ?? 0, takes, form));
	const { whole } = reads;
	const { owner } = takes;
	if (declared !== null && declared <= WHOLE_BYTES && whole.fits(owner, declared)) {
		const reading = new TextReading(connection, declared, takes, form);
		whole.take(owner, declared);
		return makeBeforeDeadline(reads, READ_DEADLINE_MS, reading).finally(() => whole.giveBack(owner, declared));
	}
	return decodedBody(readPieces(connection, { bytesMax, reads, takes, deadlineMs: READ_DEADLINE_MS }), takes, form);
}

/** A separate function, so that small bodies allocate no closure. */
async function decodedBody(reading: Promise<Uint8Array[]>, takes: ByteCounter, form: BodyForm): Promise<JsonBody> {
	return bodyOf(await decoded(reading, takes.owner), takes, form);
}

/** A class, because every request creates one and a class allocates less than closures. */
class TextReading {
	readonly connection: Connection;
	readonly reading: Promise<string>;
	readonly #declared: number;
	readonly #takes: ByteCounter;
	readonly #form: BodyForm;

	constructor(connection: Connection, declared: number, takes: ByteCounter, form: BodyForm) {
		// The whole declared length, because the runtime does not tell how much has arrived.
		if (declared > SMALL_BODY_BYTES) takes.take(declared);
		this.connection = connection;
		this.reading = connection.request.text();
		this.#declared = declared;
		this.#takes = takes;
		this.#form = form;
	}

	get owner(): string {
		return this.#takes.owner;
	}

	lasts(end: (why: Fault) => void): void {
		if (this.#declared > SMALL_BODY_BYTES) this.#takes.arrives(end);
	}

	make(text: string): JsonBody | Promise<JsonBody> {
		this.#takes.arrived();
		if (this.#declared <= SMALL_BODY_BYTES) this.#takes.take(this.#declared);
		return bodyOf(text, this.#takes, this.#form);
	}
}

/** Returns a promise only if the text must wait for texts of other requests to be processed. */
function bodyOf(text: string, takes: ByteCounter, form: BodyForm): JsonBody | Promise<JsonBody> {
	if (text.length < SHORT_CHARS) return shortBodyOf(text, structureOf(text, takes, form), form);
	return text.length < LONG_CHARS ? bodyInTurn(text, takes, form) : longBodyOf(text, takes, form);
}

/** A separate function, so that small bodies allocate no closure. */
function bodyInTurn(text: string, takes: ByteCounter, form: BodyForm): JsonBody | Promise<JsonBody> {
	return runInTurn(takes.owner, () => {
		const structure = structureOf(text, takes, form);
		return structure.parts < PARTS_A_STEP
			? shortBodyOf(text, structure, form)
			: longBodyOf(text, takes, form, structure);
	});
}

function structureOf(text: string, takes: ByteCounter, { field, lists }: BodyForm): JsonStructure {
	const checked = checkJsonStructure(text, text.length < RAW_FIELD_CHARS_MIN ? undefined : field, lists);
	assert(!(checked instanceof Promise), "a text shorter than LONG_CHARS is checked in one turn");
	return counted(checked, takes);
}

function counted(structure: JsonStructure, takes: ByteCounter): JsonStructure {
	if (structure.parsedBytes > 0) takes.take(structure.parsedBytes);
	return structure;
}

function shortBodyOf(text: string, structure: JsonStructure, { field }: BodyForm): JsonBody {
	const raw = structure.field();
	const short = shortenTexts(text, raw);
	const value = parseObject(short.text);
	keepDigits(value, structure, short.leftOut === undefined ? undefined : field);
	return { value, raw, leftOut: short.leftOut, timeSlice: undefined };
}

async function longBodyOf(
	text: string,
	takes: ByteCounter,
	{ field, lists }: BodyForm,
	checked?: JsonStructure,
): Promise<JsonBody> {
	const timeSlice = createTimeSlice(TURN_MS, takes.owner);
	await timeSlice.begin();
	const structure = checked ?? counted(await checkJsonStructure(text, field, lists, timeSlice), takes);
	const raw = structure.field();
	if (timeSlice.isOver()) await timeSlice.next();
	const short = shortenTexts(text, raw);
	if (timeSlice.isOver()) await timeSlice.next();
	const value =
		structure.parts < PARTS_A_STEP
			? parseObject(short.text)
			: objectOf((await parseJsonInTurns(Buffer.from(short.text), undefined, timeSlice)) ?? notJson());
	keepDigits(value, structure, short.leftOut === undefined ? undefined : field);
	if (timeSlice.isOver()) await timeSlice.next();
	return { value, raw, leftOut: short.leftOut, timeSlice };
}

function parseObject(text: string): Record<string, unknown> {
	return objectOf(parseJson(text));
}

function objectOf(value: unknown): Record<string, unknown> {
	if (typeof value !== "object" || value === null || Array.isArray(value))
		throw new Fault("invalid_request", "The request body must be a JSON object.");
	return value as Record<string, unknown>;
}

/** Parses members with integers beyond 2^53 again, without loss of digits. `except`: a member with cut strings. */
function keepDigits(value: Record<string, unknown>, { exact }: JsonStructure, except: string | undefined): void {
	if (exact === undefined) return;
	const numbers: Record<string, unknown> = Object.create(null);
	for (const [name, text] of exact) {
		if (name === except) continue;
		// Fields that the gateway checks stay numbers, with their exact text kept separately; others become exact text.
		(typeof value[name] === "number" ? numbers : value)[name] = parseExactly(text, name.slice(0, 64));
	}
	(value as WithExactNumbers)[EXACT_NUMBERS] = numbers;
}

function parseJson(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch (cause) {
		return notJson(cause);
	}
}

function notJson(cause?: unknown): never {
	throw new Fault("invalid_request", "The request body is not valid JSON.", { cause });
}

function piecesOf(bytes: Uint8Array): Uint8Array[] {
	const at = (nth: number) => nth * DECODED_BYTES;
	return Array.from({ length: Math.ceil(bytes.length / DECODED_BYTES) }, (_, nth) =>
		bytes.subarray(at(nth), at(nth + 1)),
	);
}

/** Decodes the pieces of a body in time slices. Not by `stream: true`, which is ten times slower beyond Latin-1. */
async function decoded(reading: Promise<readonly Uint8Array[]>, owner: string): Promise<string> {
	const pieces = await reading;
	const timeSlice = createTimeSlice(TURN_MS, owner);
	if (pieces.length > 1) await timeSlice.begin();
	const texts: string[] = [];
	let rest = new Uint8Array();
	for (const [at, piece] of pieces.entries()) {
		const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
		const to = at === pieces.length - 1 ? bytes.length : lastCharacter(bytes);
		if (to > 0) texts.push(new TextDecoder("utf-8", { ignoreBOM: texts.length > 0 }).decode(bytes.subarray(0, to)));
		rest = bytes.slice(to);
		if (timeSlice.isOver()) await timeSlice.next();
	}
	const [text, ...others] = texts;
	if (text === undefined || others.length === 0) return text ?? "";
	await timeSlice.next();
	return texts.join("");
}

/** Start of the last character, of which bytes may be missing. It has at most three continuation bytes. */
function lastCharacter(bytes: Uint8Array): number {
	let at = bytes.length - 1;
	for (let back = 0; back < 3 && ((bytes[at] ?? 0) & 0xc0) === 0x80; back += 1) at -= 1;
	return Math.max(0, at);
}
