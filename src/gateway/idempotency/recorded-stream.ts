import { CounterMap } from "../../base/counter-map.ts";

const ERROR_EVENT = /(?:^|\n)data: \{"error":/;
const END = "data: [DONE]\n\n";

/**
 * Passes a stream on and keeps a copy. At the stream's proper end `whole` gets the copy, or null if it is larger than
 * `bytesMax` or memory is short. Any other end calls `broken`.
 */
export function recordStream(
	source: ReadableStream,
	bytesMax: number,
	copy: StreamCopy,
	on: { whole(body: Uint8Array | null): void; broken(): void },
): ReadableStream {
	const reader = source.getReader() as ReadableStreamDefaultReader<string | Uint8Array>;
	const decoder = new TextDecoder();
	let text = "";
	/** Too long to keep: only its end is examined. */
	let isCut = false;
	let hasFailed = false;

	function take(value: string | Uint8Array): void {
		const piece = typeof value === "string" ? value : decoder.decode(value, { stream: true });
		text += piece;
		hasFailed ||= isCut && ERROR_EVENT.test(text);
		if (!isCut && text.length <= bytesMax && copy.add(piece.length)) return;
		hasFailed ||= ERROR_EVENT.test(text);
		isCut = true;
		copy.letGo();
		text = text.slice(-END.length);
	}
	function broken(): void {
		copy.letGo();
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
				copy.letGo();
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

/** Reads a short answer whole; returns a longer one as a stream from its beginning. */
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

export type StreamCopies = ReturnType<typeof createStreamCopies>;

interface StreamCopy {
	/** Adds characters; returns false if memory is short or the copy was dropped. */
	add(chars: number): boolean;
	/** Frees the memory. Idempotent. */
	letGo(): void;
}

/**
 * Limits of all accounts and of one: some hundred usual streams. Beyond them a stream's repetition gets 409 with its
 * cost.
 */
const COPIES_BYTES_MAX = 256 * 1024 * 1024;
const COPIES_ACCOUNT_BYTES_MAX = 64 * 1024 * 1024;
/** The runtime stores a string with one byte per character, or two if one is beyond Latin-1. */
const CHAR_BYTES = 2;

/** Memory for copies of streams with an idempotency key. A stream without memory passes and is not kept. */
export function createStreamCopies({ bytesMax = COPIES_BYTES_MAX, accountBytesMax = COPIES_ACCOUNT_BYTES_MAX } = {}) {
	const ofAccounts = new CounterMap();
	let all = 0;

	return {
		begin(accountId: string): StreamCopy {
			let held = 0;
			let isOver = false;
			return {
				add(chars) {
					const bytes = chars * CHAR_BYTES;
					if (isOver || all + bytes > bytesMax || ofAccounts.of(accountId) + bytes > accountBytesMax) return false;
					held += bytes;
					all += bytes;
					ofAccounts.add(accountId, bytes);
					return true;
				},
				letGo() {
					isOver = true;
					all -= held;
					if (held > 0) ofAccounts.add(accountId, -held);
					held = 0;
				},
			};
		},
		bytes: (): number => all,
	};
}
