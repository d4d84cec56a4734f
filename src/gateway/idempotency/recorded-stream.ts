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
