/** One streamed answer of one replica, read as its events come. */
import type { Clock } from "../../base/clock.ts";
import { nextTurn } from "../../base/next-turn.ts";
import type { ReportedUsage } from "../usage.ts";
import type { Attempt } from "./attempt.ts";
import { died, failed, type UpstreamFailure } from "./failure.ts";
import { readText } from "./read-answer.ts";
import { createSseReader } from "./sse-reader.ts";
import type { AnswerStream, OutputChunk, StreamWire } from "./stream-wire.ts";

/** How long a stream may take from its end marker to the end of its body before the connection is given up. */
const DRAIN_MS = 1_000;
/** The largest answer that comes whole where events were asked for: it leaves as one event. */
const WHOLE_BYTES_MAX = 4 * 1024 * 1024;
/** As much of a stream is read in one step: what arrived while the event loop was busy may be a hundred times more. */
const STEP_BYTES = 64 * 1024;
/** The longest stream, comments and framing included; a longer one is a failure. */
const STREAM_BYTES_MAX = 512 * 1024 * 1024;

const NO_BYTES = new Uint8Array();

/** Sends the request before it returns. `next` is to be called at once, so that no rejection goes unheard. */
export function openEventStream<Chunk extends OutputChunk>(
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
	/** What arrived and waits for its turn. */
	let waiting: Uint8Array | undefined;
	/** Output so far. */
	const size = { events: 0, bytes: 0 };

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
				const { done, value } = await (waiting === undefined ? read() : step());
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

	async function read(): Promise<{ done: boolean; value: Uint8Array | undefined }> {
		const { done, value } = await (source as ReadableStreamDefaultReader<Uint8Array>).read();
		if (value === undefined || value.byteLength <= STEP_BYTES) return { done, value };
		waiting = value;
		return step();
	}

	/** The next part of what arrived at once. */
	async function step(): Promise<{ done: false; value: Uint8Array | undefined }> {
		await nextTurn();
		const value = waiting?.subarray(0, STEP_BYTES);
		waiting = (waiting?.byteLength ?? 0) > STEP_BYTES ? waiting?.subarray(STEP_BYTES) : undefined;
		return { done: false, value };
	}

	/** The headers; an answer that came whole instead of as events is returned as one chunk. */
	async function open(): Promise<Chunk | undefined> {
		const response = await answer;
		const refused = attempt.taken(response);
		if (refused) await refused;
		if (response.body === null) throw died("an answer without a body");
		if (!(response.headers.get("content-type") ?? "").includes("json")) {
			source = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
			return undefined;
		}
		const whole = wire.whole(await readText(response, WHOLE_BYTES_MAX), replica.dialect);
		wholeUsage = whole.usage;
		answeredWhole = true;
		finish(true);
		return whole.chunk;
	}

	function counted(bytes: Uint8Array = NO_BYTES): Uint8Array {
		streamBytes += bytes.byteLength;
		if (streamBytes > STREAM_BYTES_MAX) throw failed("a stream beyond the limit");
		return bytes;
	}

	function accept(payloads: readonly string[]): Chunk[] {
		const chunks: Chunk[] = [];
		try {
			for (const payload of payloads) {
				const chunk = reader.accept(payload);
				if (chunk === undefined) continue;
				chunks.push(chunk);
				size.bytes += chunk.outputBytes;
				if (chunk.outputBytes > 0) size.events += 1;
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
		learn();
		attempt.succeed();
		if (!bodyEnded) drain();
	}

	/** Thoughts may be counted and not shown, so what they are part of says nothing of events. */
	function learn(): void {
		const { completionTokens, reasoningTokens } = reader.usage() ?? {};
		if (reader.usageIsFinal() && completionTokens !== undefined && reasoningTokens === 0)
			replica.worth.learn(completionTokens, size);
	}

	/** Reads to the end of the body, which keeps the connection for the next call; nobody waits for it. */
	function drain(): void {
		const cancel = deps.clock.after(DRAIN_MS, () => guard.abort());
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
		tokensOf: replica.worth.tokensOf,
		close() {
			if (over) return;
			over = true;
			attempt.close();
			source?.cancel().catch(() => {});
		},
	};
}
