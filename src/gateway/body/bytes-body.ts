import { Fault } from "../../base/fault.ts";
import { waitForTurn } from "../../base/time-slice.ts";
import type { Connection } from "../connection.ts";
import { CODING_HEADER } from "../headers.ts";
import { type BodyReads, inTime } from "./body-reads.ts";

/** Deadline for the arrival of an upload; long enough for slow connections. */
const FILE_DEADLINE_MS = 10 * 60_000;

export interface ByteCounter {
	readonly owner: string;
	/** Counts bytes that have arrived. Throws a Fault above the limit. */
	take(bytes: number): void;
	/** Called when reading begins. Calling `end` aborts the reading. */
	arrives(end: (why: Fault) => void): void;
	arrived(): void;
}

export const TAKES_ANY: ByteCounter = { owner: "", take() {}, arrives() {}, arrived() {} };

/** Assumed CPU time for receiving one chunk; accounts take turns by it. */
const PIECE_MS = 0.1;

/** Reads a body of at most `bytesMax` bytes. Faults: payload_too_large, request_timeout, and those of `takes.take`. */
export function readBytes(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: ByteCounter = TAKES_ANY,
	deadlineMs = FILE_DEADLINE_MS,
): Promise<Uint8Array<ArrayBuffer>> {
	try {
		assertDeclared(connection.request, bytesMax);
	} catch (error) {
		return Promise.reject(error);
	}
	return arrivingBytes(connection, { bytesMax, reads, takes, deadlineMs });
}

/** Returns the length declared by `content-length`; null without that header. Fault payload_too_large. */
export function assertDeclared(request: Request, bytesMax: number): number | null {
	const header = request.headers.get("content-length");
	if (header === null) return null;
	// `parseInt`, because a repeated header arrives joined as `5, 5`: `Number` would give NaN and pass every limit.
	const declared = Number.parseInt(header, 10);
	if (declared > bytesMax) throw bodyTooLarge(bytesMax);
	return declared;
}

interface ReadOptions {
	readonly bytesMax: number;
	readonly reads: BodyReads;
	readonly takes: ByteCounter;
	readonly deadlineMs: number;
}

/**
 * Reads chunk by chunk. Accounts take turns; the client keeps unread bytes (backpressure). Only received bytes are
 * counted, not the declared length, so a connection that sends nothing occupies no memory.
 */
async function arrivingBytes(
	connection: Connection,
	{ bytesMax, reads, takes, deadlineMs }: ReadOptions,
): Promise<Uint8Array<ArrayBuffer>> {
	const reader = connection.request.body?.getReader();
	if (reader === undefined) return new Uint8Array();
	const displaced = Promise.withResolvers<never>();
	let isOver = false;
	const letGo = () => {
		isOver = true;
		void reader.cancel().catch(() => {});
	};

	async function read(from: NonNullable<typeof reader>): Promise<Uint8Array<ArrayBuffer>> {
		const chunks: Uint8Array[] = [];
		let bytes = 0;
		for (;;) {
			const turn = waitForTurn(takes.owner, PIECE_MS, bytes > 0);
			if (turn !== undefined) await turn;
			const { done, value } = await from.read();
			if (done || isOver) return joined(chunks, bytes);
			bytes += value.length;
			if (bytes > bytesMax) throw bodyTooLarge(bytesMax);
			takes.take(value.length);
			chunks.push(value);
		}
	}

	takes.arrives(displaced.reject);
	try {
		const reading = Promise.race([read(reader), displaced.promise]);
		return await inTime(reads, deadlineMs, { owner: takes.owner, connection, reading });
	} catch (error) {
		letGo();
		throw error;
	} finally {
		takes.arrived();
	}
}

function joined(chunks: readonly Uint8Array[], bytes: number): Uint8Array<ArrayBuffer> {
	const [first] = chunks;
	if (first !== undefined && chunks.length === 1) return first as Uint8Array<ArrayBuffer>;
	const all = Buffer.allocUnsafeSlow(bytes);
	let at = 0;
	for (const chunk of chunks) {
		all.set(chunk, at);
		at += chunk.length;
	}
	return all;
}

function bodyTooLarge(bytesMax: number): Fault {
	return new Fault("payload_too_large", `The body is larger than ${shownBytes(bytesMax)}.`);
}

function shownBytes(bytes: number): string {
	if (bytes % BYTES_PER_MB === 0) return `${bytes / BYTES_PER_MB} MB`;
	return bytes % BYTES_PER_KB === 0 ? `${bytes / BYTES_PER_KB} KB` : `${bytes} bytes`;
}

const BYTES_PER_KB = 1024;
const BYTES_PER_MB = 1024 * BYTES_PER_KB;

/**
 * Reads a form of at most `bytesMax` bytes, or parses `bytes` if the body was already read. Faults:
 * unsupported_media_type, payload_too_large, request_timeout, invalid_request.
 */
export async function readForm(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: ByteCounter = TAKES_ANY,
	bytes?: Uint8Array<ArrayBuffer>,
): Promise<FormData> {
	const type = formType(connection.request);
	const body = bytes ?? (await readBytes(connection, bytesMax, reads, takes));
	return parseForm(new Response(body, { headers: { "content-type": type } }));
}

/** Fault unsupported_media_type for a compressed body, because its decompressed size is unknown. */
export function assertNotPacked(headers: Headers): void {
	const coding = headers.get(CODING_HEADER);
	if (coding === null || /^\s*(identity)?\s*$/i.test(coding)) return;
	throw new Fault(
		"unsupported_media_type",
		"Compressed request bodies are not supported. Send the body without `content-encoding`.",
		{ param: CODING_HEADER },
	);
}

/** The form's content type with its boundary. Fault unsupported_media_type for any other content type. */
export function formType({ headers }: Request): string {
	assertNotPacked(headers);
	const type = headers.get("content-type") ?? "";
	if (/^multipart\/form-data\b/i.test(type)) return type;
	throw new Fault(
		"unsupported_media_type",
		"The request body must be a form. Set `content-type: multipart/form-data`.",
	);
}

async function parseForm(source: Response): Promise<FormData> {
	try {
		return await source.formData();
	} catch (error) {
		throw new Fault("invalid_request", "The request body is not a valid multipart form.", { cause: error });
	}
}
