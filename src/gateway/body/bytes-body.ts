import { Fault } from "../../base/fault.ts";
import type { Connection } from "../connection.ts";
import { type BodyReads, inTime } from "./body-reads.ts";

/** A file takes its time on a slow line, but not for ever. */
export const FILE_DEADLINE_MS = 10 * 60_000;

/** Is told of the bytes of a body. */
export interface TakesBytes {
	/** So many more are read. Throws a Fault if they may not be. */
	take(bytes: number): void;
}

export const TAKES_ANY: TakesBytes = { take() {} };

/** A body of any kind, at most `bytesMax` bytes of it. Faults: payload_too_large, request_timeout, those of `take`. */
export async function readBytes(
	connection: Connection,
	bytesMax: number,
	reads: BodyReads,
	takes: TakesBytes = TAKES_ANY,
): Promise<Uint8Array<ArrayBuffer>> {
	const { request } = connection;
	const declared = declaredBytes(request, bytesMax, takes);
	// To ask for the stream of a body costs more than to read it whole.
	return declared === null && request.body !== null
		? readChunked(request.body, { connection, bytesMax, reads, deadlineMs: FILE_DEADLINE_MS, takes })
		: inTime(reads, FILE_DEADLINE_MS, { connection, reading: request.bytes() });
}

/** The length that the request gives, taken; null if it gives none. Faults: payload_too_large, those of `take`. */
export function declaredBytes(request: Request, bytesMax: number, takes: TakesBytes): number | null {
	const header = request.headers.get("content-length");
	if (header === null) return null;
	// The runtime lets through two such headers of one text, and gives `5, 5`: as a number that is none, and passes each bound.
	const declared = Number.parseInt(header, 10);
	if (declared > bytesMax) throw bodyTooLarge(bytesMax);
	takes.take(declared);
	return declared;
}

interface ChunkedOptions {
	readonly connection: Connection;
	readonly bytesMax: number;
	readonly reads: BodyReads;
	readonly deadlineMs: number;
	readonly takes: TakesBytes;
}

/** A body without a length is counted while it arrives, and let go when it is too large or too late. */
export function readChunked(
	body: ReadableStream<Uint8Array>,
	{ connection, bytesMax, reads, deadlineMs, takes }: ChunkedOptions,
): Promise<Uint8Array<ArrayBuffer>> {
	const reader = body.getReader();
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

/** In the largest unit that has no rest: some bodies are bounded by kilobytes. */
function shownBytes(bytes: number): string {
	if (bytes % BYTES_PER_MB === 0) return `${bytes / BYTES_PER_MB} MB`;
	return bytes % BYTES_PER_KB === 0 ? `${bytes / BYTES_PER_KB} KB` : `${bytes} bytes`;
}

const BYTES_PER_KB = 1024;
const BYTES_PER_MB = 1024 * BYTES_PER_KB;
