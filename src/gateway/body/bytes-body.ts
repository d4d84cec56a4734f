import { Fault } from "../../base/fault.ts";
import type { Connection } from "../connection.ts";
import { type BodyReads, inTime } from "./body-reads.ts";

/** Deadline of an uploaded file, long enough for a slow connection. */
const FILE_DEADLINE_MS = 10 * 60_000;

export interface TakesBytes {
	/** Counts bytes that are read. Throws a Fault at a limit. */
	take(bytes: number): void;
}

export const TAKES_ANY: TakesBytes = { take() {} };

/** Reads a body of at most `bytesMax` bytes. Faults: payload_too_large, request_timeout, those of `take`. */
export async function readBytes(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: TakesBytes = TAKES_ANY,
): Promise<Uint8Array<ArrayBuffer>> {
	const declared = declaredBytes(connection.request, bytesMax, takes);
	return bytesOf(connection, declared, { bytesMax, reads, takes, deadlineMs: FILE_DEADLINE_MS });
}

/** Declared length, counted; null without one. Faults: payload_too_large, those of `take`. */
export function declaredBytes(request: Request, bytesMax: number, takes: TakesBytes): number | null {
	const header = request.headers.get("content-length");
	if (header === null) return null;
	// Refuses a repeated header, which the runtime returns as `5, 5`: not a number, it would pass every limit.
	const declared = Number.parseInt(header, 10);
	if (declared > bytesMax) throw bodyTooLarge(bytesMax);
	takes.take(declared);
	return declared;
}

interface ReadOptions {
	readonly bytesMax: number;
	readonly reads: BodyReads;
	readonly takes: TakesBytes;
	readonly deadlineMs: number;
}

/** Reads a body's bytes in time. Without a declared length they are counted as they arrive. */
export function bytesOf(
	connection: Connection,
	declared: number | null,
	{ bytesMax, reads, takes, deadlineMs }: ReadOptions,
): Promise<Uint8Array<ArrayBuffer>> {
	const { request } = connection;
	if (declared !== null || request.body === null)
		return inTime(reads, deadlineMs, { connection, reading: request.bytes() });
	const reader = request.body.getReader();
	const letGo = () => void reader.cancel().catch(() => {});

	async function read(): Promise<Uint8Array<ArrayBuffer>> {
		const chunks: Uint8Array[] = [];
		let bytes = 0;
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return new Uint8Array(Buffer.concat(chunks));
			bytes += value.length;
			if (bytes > bytesMax) {
				letGo();
				throw bodyTooLarge(bytesMax);
			}
			try {
				takes.take(value.length);
			} catch (error) {
				letGo();
				throw error;
			}
			chunks.push(value);
		}
	}

	return inTime(reads, deadlineMs, { connection, reading: read(), onLate: letGo });
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
 * Reads a form of at most `bytesMax` bytes, or parses `bytes` if they were read already. Faults:
 * unsupported_media_type, payload_too_large, request_timeout, invalid_request.
 */
export async function readForm(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: TakesBytes = TAKES_ANY,
	bytes?: Uint8Array<ArrayBuffer>,
): Promise<FormData> {
	const { request } = connection;
	const type = formType(request);
	const whole = (body: Uint8Array<ArrayBuffer>) => new Response(body, { headers: { "content-type": type } });
	if (bytes !== undefined) return parseForm(whole(bytes));
	const declared = declaredBytes(request, bytesMax, takes);
	const source = declared === null ? whole(await readBytes(connection, bytesMax, reads, takes)) : request;
	return inTime(reads, FILE_DEADLINE_MS, { connection, reading: parseForm(source) });
}

/** The form's content type with its boundary. Fault unsupported_media_type. */
export function formType({ headers }: Request): string {
	const type = headers.get("content-type") ?? "";
	if (/^multipart\/form-data\b/i.test(type)) return type;
	throw new Fault(
		"unsupported_media_type",
		"The request body must be a form. Set `content-type: multipart/form-data`.",
	);
}

async function parseForm(source: Request | Response): Promise<FormData> {
	try {
		return await source.formData();
	} catch (error) {
		throw new Fault("invalid_request", "The request body is not a valid multipart form.", { cause: error });
	}
}
