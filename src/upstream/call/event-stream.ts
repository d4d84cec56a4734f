/** One streamed answer of one replica, read as its events come. */
import type { Clock } from "../../base/clock.ts";
import type { ReportedUsage } from "../usage.ts";
import type { Attempt } from "./attempt.ts";
import { died, failed, type UpstreamFailure } from "./failure.ts";
import { ANSWER_BYTES_MAX, readText } from "./post.ts";
import { createSseReader } from "./sse-reader.ts";
import type { AnswerStream, StreamWire } from "./stream-wire.ts";

/** How long a stream may take from its end marker to the end of its body before the connection is given up. */
const DRAIN_MS = 1_000;
/** The longest stream, comments and framing included; a longer one is a failure. */
const STREAM_BYTES_MAX = 512 * 1024 * 1024;

/** Sends the request before it returns. `next` is to be called at once, so that no rejection goes unheard. */
export function openEventStream<Chunk>(
	deps: { clock: Clock },
	attempt: Attempt,
	wire: StreamWire<Chunk>,
	body: string | FormData,
): Omit<AnswerStream<Chunk>, "replica"> {
	const { guard, replica } = attempt;
	const reader = wire.reader(replica.dialect);
	const events = createSseReader();
	const answer = attempt.post({ path: wire.path, body, accept: "text/event-stream" });
	let source: ReadableStreamDefaultReader<Uint8Array> | undefined;
	/** Usage of an answer that came whole. */
	let wholeUsage: ReportedUsage | undefined;
	let answeredWhole = false;
	/** The upstream said its last word, or we hung up. */
	let over = false;
	/** Why it went wrong; kept back while chunks that came before it are on their way out. */
	let failure: UpstreamFailure | undefined;
	let streamBytes = 0;

	async function next(): Promise<readonly Chunk[] | null> {
		if (failure !== undefined) throw failure;
		if (over) return null;
		guard.waitStarts();
		try {
			if (source === undefined) {
				const whole = await open();
				if (whole !== undefined) return delivered([whole]);
			}
			for (;;) {
				const { done, value } = await (source as ReadableStreamDefaultReader<Uint8Array>).read();
				const payloads = done ? events.end() : events.push(counted(value));
				const chunks = payloads.length === 0 ? [] : accept(payloads);
				if (failure === undefined) {
					if (reader.ended() || (done && reader.complete())) finish(done);
					else if (done) fall(died("the stream ended without its end"));
				}
				if (chunks.length > 0) return delivered(chunks);
				if (failure !== undefined) throw failure;
				if (over) return null;
				if (payloads.length > 0) guard.waitStarts();
			}
		} catch (error) {
			throw fall(error);
		}
	}

	/** The headers; an answer that came whole instead of as events is returned as one chunk. */
	async function open(): Promise<Chunk | undefined> {
		const response = await answer;
		if (response.body === null) throw died("an answer without a body");
		if (!(response.headers.get("content-type") ?? "").includes("json")) {
			source = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
			return undefined;
		}
		const whole = wire.whole(await readText(response, ANSWER_BYTES_MAX), replica.dialect);
		wholeUsage = whole.usage;
		answeredWhole = true;
		finish(true);
		return whole.chunk;
	}

	function counted(bytes: Uint8Array): Uint8Array {
		streamBytes += bytes.byteLength;
		if (streamBytes > STREAM_BYTES_MAX) throw failed("a stream beyond the limit");
		return bytes;
	}

	function accept(payloads: readonly string[]): Chunk[] {
		const chunks: Chunk[] = [];
		try {
			for (const payload of payloads) {
				const chunk = reader.accept(payload);
				if (chunk !== undefined) chunks.push(chunk);
			}
		} catch (error) {
			fall(error);
		}
		return chunks;
	}

	function delivered(chunks: readonly Chunk[]): readonly Chunk[] {
		guard.waitEnds();
		attempt.answered();
		return chunks;
	}

	function finish(bodyEnded: boolean): void {
		over = true;
		attempt.succeed();
		if (!bodyEnded) drain();
	}

	/** Reads to the end of the body, which keeps the connection for the next call; nobody waits for it. */
	function drain(): void {
		const cancel = deps.clock.after(DRAIN_MS, guard.abort);
		source?.read().then(
			({ done }) => {
				cancel();
				if (!done) guard.abort();
			},
			() => cancel(),
		);
	}

	function fall(error: unknown): UpstreamFailure {
		if (failure !== undefined) return failure;
		over = true;
		failure = attempt.fail(error);
		source?.cancel().catch(() => {});
		return failure;
	}

	return {
		next,
		usage: () => (answeredWhole ? wholeUsage : reader.usage()),
		usageIsFinal: () => (answeredWhole ? wholeUsage !== undefined : reader.usageIsFinal()),
		close() {
			if (over) return;
			over = true;
			attempt.close();
			source?.cancel().catch(() => {});
		},
	};
}
