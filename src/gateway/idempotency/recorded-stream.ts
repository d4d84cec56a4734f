import type { BodyHold } from "../body/body-memory.ts";

const ERROR_EVENT = /(?:^|\n)data: \{"error":/;
const END = "data: [DONE]\n\n";
/** Memory per character: a string takes two bytes per character if any character is beyond Latin-1. */
const CHAR_BYTES = 2;

/**
 * Forwards a stream and copies it. Calls `whole` with the copy of a complete stream, or with null if the copy exceeded
 * a limit. Calls `broken` if the stream did not end completely.
 */
export function recordStream(
	source: ReadableStream,
	bytesMax: number,
	memory: BodyHold,
	on: { whole(body: Uint8Array | null): void; broken(): void },
): ReadableStream {
	const reader = source.getReader() as ReadableStreamDefaultReader<string | Uint8Array>;
	const decoder = new TextDecoder();
	let text = "";
	/** True if the stream is too long to keep. `text` is then only its end, which shows whether it is complete. */
	let isCut = false;
	let hasFailed = false;

	function take(value: string | Uint8Array): void {
		const piece = typeof value === "string" ? value : decoder.decode(value, { stream: true });
		text += piece;
		hasFailed ||= isCut && ERROR_EVENT.test(text);
		if (!isCut && text.length <= bytesMax && hasRoom(memory, piece.length * CHAR_BYTES)) return;
		hasFailed ||= ERROR_EVENT.test(text);
		isCut = true;
		memory.release();
		text = text.slice(-END.length);
	}
	function broken(): void {
		memory.release();
		on.broken();
	}

	return new ReadableStream({
		async pull(controller) {
			try {
				const { done, value } = await reader.read();
				if (!done) {
					take(value);
					controller.enqueue(value);
					return;
				}
				if (!text.endsWith(END) || hasFailed || ERROR_EVENT.test(text)) broken();
				else on.whole(isCut ? null : new TextEncoder().encode(text));
				memory.release();
				controller.close();
			} catch (error) {
				broken();
				controller.error(error);
			}
		},
		cancel(reason) {
			broken();
			return reader.cancel(reason);
		},
	});
}

function hasRoom(memory: BodyHold, bytes: number): boolean {
	try {
		memory.take(bytes);
		return true;
	} catch {
		return false;
	}
}

/** Reads an answer of at most `bytesMax` bytes completely; returns a longer one as a stream from its first byte. */
export async function readShortAnswer(
	source: ReadableStream,
	bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream> {
	const reader = source.getReader() as ReadableStreamDefaultReader<string | Uint8Array>;
	const pieces: Uint8Array[] = [];
	let bytes = 0;
	while (bytes <= bytesMax) {
		const { done, value } = await reader.read();
		if (done) return new Uint8Array(Buffer.concat(pieces));
		const piece = typeof value === "string" ? new TextEncoder().encode(value) : value;
		bytes += piece.byteLength;
		pieces.push(piece);
	}
	return new ReadableStream({
		async pull(controller) {
			const first = pieces.shift();
			if (first !== undefined) {
				controller.enqueue(first);
				return;
			}
			const { done, value } = await reader.read();
			if (done) controller.close();
			else controller.enqueue(value);
		},
		cancel: (reason) => reader.cancel(reason),
	});
}
