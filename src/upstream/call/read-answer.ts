import { parseJsonInTurns } from "../../base/json-in-turns.ts";
import { createTimeSlice } from "../../base/time-slice.ts";
import { parseJson } from "../wire-value.ts";
import { UpstreamFailure } from "./failure.ts";

export const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Largest answer to a batch line. Equal to the largest line, because both are processed as one text. */
export const LINE_ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** Longer bodies are parsed in time slices. */
export const SHORT_ANSWER_BYTES = 128 * 1024;
/** Bytes that arrive together when reading of a long answer starts. */
const FIRST_BYTES = 512 * 1024;

/** True if the declared length is short enough to read and parse the body in one step. */
export function hasShortBody(response: Response): boolean {
	return declaredBytes(response) <= SHORT_ANSWER_BYTES;
}

export interface OpenedBody {
	readonly source: ReadableStreamDefaultReader<Uint8Array>;
	/** Bytes that were already read to detect the format. */
	readonly first: Uint8Array | undefined;
}

export function bodySource(response: Response): OpenedBody["source"] {
	return (response.body ?? new Blob().stream()).getReader() as OpenedBody["source"];
}

/** Reads the first bytes of a body, which show whether it consists of server-sent events. */
export async function openBody(response: Response): Promise<OpenedBody> {
	const source = bodySource(response);
	const { value } = await source.read();
	return { source, first: value };
}

/** First characters of event fields and comments. No JSON text begins with them. */
const EVENTS_BEGIN = /^\s*[deir:]/;

export function isEventStream({ first }: OpenedBody): boolean {
	return first !== undefined && EVENTS_BEGIN.test(new TextDecoder().decode(first.subarray(0, 64)));
}

/** Reserves memory for more bytes of an answer. Returns a promise if they must wait. */
export type ReservesBytes = (bytes: number) => undefined | Promise<void>;

/**
 * Returns the parsed JSON (undefined if invalid) and, for a long body, its length (otherwise 0). Throws UpstreamFailure
 * `failed` above `bytesMax`. Calls `takes` only for long bodies.
 */
export async function readLongAnswer(
	response: Response,
	bytesMax: number,
	takes: ReservesBytes,
	opened?: OpenedBody,
): Promise<{ value: unknown; bytes: number }> {
	const bytes = await readBytes(response, bytesMax, opened, takes);
	const isLong = bytes.length > SHORT_ANSWER_BYTES;
	return {
		value: isLong ? await parseJsonInTurns(bytes) : parseJson(new TextDecoder().decode(bytes)),
		bytes: isLong ? bytes.length : 0,
	};
}

export async function readText(response: Response, bytesMax: number, opened?: OpenedBody): Promise<string> {
	return new TextDecoder().decode(await readBytes(response, bytesMax, opened));
}

export async function readBytes(
	response: Response,
	bytesMax: number,
	opened?: OpenedBody,
	takes?: ReservesBytes,
): Promise<Uint8Array> {
	const chunks: Uint8Array[] = [];
	let length = 0;
	let taken = 0;
	if (takes !== undefined && declaredBytes(response) > SHORT_ANSWER_BYTES) {
		taken = Math.min(declaredBytes(response), FIRST_BYTES);
		const room = takes(taken);
		// Must precede reading, because the runtime buffers two megabytes once reading starts.
		if (room) await room;
	}
	const source = opened?.source ?? bodySource(response);
	for (let value = opened?.first ?? (await source.read()).value; value; value = (await source.read()).value) {
		length += value.byteLength;
		if (length > bytesMax) {
			await source.cancel();
			throw new UpstreamFailure("failed", { status: response.status, private: "an answer beyond the limit" });
		}
		chunks.push(value);
		if (takes === undefined || length <= Math.max(taken, SHORT_ANSWER_BYTES)) continue;
		const room = takes(length - taken);
		taken = length;
		if (room) await room;
	}
	const [first] = chunks;
	if (chunks.length === 1 && first !== undefined) return first;
	const bytes = Buffer.allocUnsafe(length);
	const timeSlice = createTimeSlice();
	let at = 0;
	for (const chunk of chunks) {
		bytes.set(chunk, at);
		at += chunk.byteLength;
		if (timeSlice.isOver()) await timeSlice.next();
	}
	return bytes;
}

/** Declared length; NaN with `transfer-encoding`, which overrides it. */
function declaredBytes({ headers }: Response): number {
	const length = headers.get("content-length");
	return length !== null && /^\d+$/.test(length) && !headers.has("transfer-encoding") ? Number(length) : Number.NaN;
}
