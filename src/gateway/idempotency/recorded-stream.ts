const ERROR_EVENT = /(?:^|\n)data: \{"error":/;
const END = "data: [DONE]\n\n";

/**
 * Passes a stream of events on and keeps a copy, which counts only once the stream has come to its proper end: `whole`
 * then gets it, or null if it is larger than `bytesMax`. Any other end is `broken`.
 */
export function recordStream(
	source: ReadableStream,
	bytesMax: number,
	on: { whole(body: Uint8Array | null): void; broken(): void },
): ReadableStream {
	const reader = source.getReader() as ReadableStreamDefaultReader<string | Uint8Array>;
	const decoder = new TextDecoder();
	let text = "";
	/** Too long to be kept: its end alone is looked at. */
	let isCut = false;
	let hasFailed = false;

	function take(value: string | Uint8Array): void {
		text += typeof value === "string" ? value : decoder.decode(value, { stream: true });
		hasFailed ||= isCut && ERROR_EVENT.test(text);
		if (text.length <= bytesMax) return;
		hasFailed ||= ERROR_EVENT.test(text);
		isCut = true;
		text = text.slice(-END.length);
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
				if (!text.endsWith(END) || hasFailed || ERROR_EVENT.test(text)) on.broken();
				else on.whole(isCut ? null : new TextEncoder().encode(text));
				controller.close();
			} catch (error) {
				on.broken();
				controller.error(error);
			}
		},
		cancel(reason) {
			on.broken();
			return reader.cancel(reason);
		},
	});
}

/** A short answer whole; one of more bytes than that as a stream, from its beginning. */
export async function readUpTo(
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
