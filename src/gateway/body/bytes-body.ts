import { Fault } from "../../base/fault.ts";
import { waitForTurn } from "../../base/time-slice.ts";
import { type Connection, unreadBytes } from "../connection.ts";
import { CODING_HEADER } from "../headers.ts";
import { type BodyReads, readBeforeDeadline } from "./body-reads.ts";

/** Deadline for the arrival of an upload; long enough for slow connections. */
const FILE_DEADLINE_MS = 10 * 60_000;

export interface ByteCounter {
	readonly owner: string;
	/** Counts bytes that have arrived, and some of the `unread` bytes. Throws a Fault above the limit. */
	take(bytes: number, unread?: number): void;
	/** Called when reading begins. Calling `end` aborts the reading. */
	arrives(end: (why: Fault) => void): void;
	/** Called when the whole body was received. */
	arrived(): void;
}

export const UNLIMITED_BYTES: ByteCounter = { owner: "", take() {}, arrives() {}, arrived() {} };

/** Assumed CPU time for receiving a piece, and for each of its bytes; accounts take turns by it. */
const PIECE_MS = 0.1;
const BYTE_MS = 1 / (512 * 1024);
/** Maximum number of chunks of less than PIECE_BYTES_MIN. They are read at once, because chunks that wait are joined. */
const SHORT_PIECES_MAX = 1_000;
const PIECE_BYTES_MIN = 16;

/** Reads a body of at most `bytesMax` bytes. Faults: payload_too_large, request_timeout, and those of `takes.take`. */
export async function readBytes(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: ByteCounter = UNLIMITED_BYTES,
	deadlineMs = FILE_DEADLINE_MS,
): Promise<Uint8Array<ArrayBuffer>> {
	assertDeclared(connection.request, bytesMax);
	return joined(await readPieces(connection, { bytesMax, reads, takes, deadlineMs }));
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
 * Reads chunk by chunk. Accounts take turns. The runtime receives up to 1 MB of unread bytes, which count from the
 * beginning; the client keeps the others (backpressure).
 */
export async function readPieces(
	connection: Connection,
	{ bytesMax, reads, takes, deadlineMs }: ReadOptions,
): Promise<Uint8Array<ArrayBuffer>[]> {
	const { request } = connection;
	const declared = assertDeclared(request, bytesMax);
	const unread = unreadBytes(request);
	// Before `body` is used: an unread refused body ends its connection.
	if (unread > 0) takes.take(0, unread);
	const length = unread > 0 ? (declared ?? bytesMax) : 0;
	const reader = request.body?.getReader();
	if (reader === undefined) return [];
	const displaced = Promise.withResolvers<never>();
	let isOver = false;
	/** The runtime drops the rest of a declared body. A chunked one is released, so that the listener can end it. */
	const letGo = () => {
		isOver = true;
		if (declared === null) reader.releaseLock();
		else reader.cancel().catch(() => {});
	};

	async function read(from: NonNullable<typeof reader>): Promise<Uint8Array<ArrayBuffer>[]> {
		const pieces: Uint8Array<ArrayBuffer>[] = [];
		let bytes = 0;
		let short = 0;
		for (let tookMs = PIECE_MS; ; ) {
			// The first piece is already in the runtime's memory.
			if (tookMs > 0 && bytes > 0) await waitForTurn(takes.owner, tookMs, true);
			const { done, value } = await from.read();
			if (done || isOver) return pieces;
			bytes += value.length;
			if (bytes > bytesMax) throw bodyTooLarge(bytesMax);
			takes.take(value.length, Math.max(0, length - bytes));
			pieces.push(value as Uint8Array<ArrayBuffer>);
			const isShort = declared === null && value.length < PIECE_BYTES_MIN;
			if (isShort) short += 1;
			if (short > SHORT_PIECES_MAX) throw chunksTooShort();
			// The runtime received the piece before its length was known, so the next one waits for it.
			tookMs = isShort ? 0 : PIECE_MS + value.length * BYTE_MS;
		}
	}

	takes.arrives(displaced.reject);
	try {
		const reading = Promise.race([read(reader), displaced.promise]);
		const pieces = await readBeforeDeadline(reads, deadlineMs, { owner: takes.owner, connection, reading });
		takes.arrived();
		return pieces;
	} catch (error) {
		letGo();
		throw error;
	}
}

function joined(pieces: readonly Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
	const [first] = pieces;
	return first !== undefined && pieces.length === 1 ? first : Buffer.concat(pieces);
}

function chunksTooShort(): Fault {
	return new Fault(
		"invalid_request",
		`The body has more than ${SHORT_PIECES_MAX} chunks of less than ${PIECE_BYTES_MIN} bytes. Send larger chunks, or a \`content-length\` header.`,
		{ param: "transfer-encoding" },
	);
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
	takes: ByteCounter = UNLIMITED_BYTES,
	bytes?: Uint8Array<ArrayBuffer>,
): Promise<FormData> {
	const type = formType(connection.request);
	const body = bytes ?? (await readBytes(connection, bytesMax, reads, takes));
	return parseForm(new Response(body, { headers: { "content-type": type } }));
}

/** Fault unsupported_media_type for a compressed body, because its decompressed size is unknown. */
export function assertNotCompressed(headers: Headers): void {
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
	assertNotCompressed(headers);
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
