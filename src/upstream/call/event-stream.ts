import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { nextTurn } from "../../base/time-slice.ts";
import type { ReportedUsage } from "../usage.ts";
import type { Attempt } from "./attempt.ts";
import { crashFailure, serverFailure, type UpstreamFailure } from "./failure.ts";
import { bodySource, isEventStream, type OpenedBody, openBody, readText } from "./read-answer.ts";
import { SseReader } from "./sse-reader.ts";
import type { AnswerStream, OutputChunk, ReadResult, StreamWire } from "./stream-wire.ts";

/** The body must end this long after the end marker; otherwise the connection is closed, not reused. */
const DRAIN_MS = 1_000;
/** How long a finished answer waits for its end marker: after its usage has arrived, and without usage. */
const COUNTED_WAIT_MS = 250;
const UNCOUNTED_WAIT_MS = 3_000;
/** Largest answer that a server sends unstreamed although a stream was requested; it becomes a single event. */
const WHOLE_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes parsed in one step. Much more may have arrived while the event loop was busy. */
const STEP_BYTES = 64 * 1024;
/** Longest stream in bytes, with comments and framing; a longer one fails. */
const STREAM_BYTES_MAX = 512 * 1024 * 1024;

const NO_BYTES = new Uint8Array();

const NO_MORE: ReadResult = { done: true };
const NOTHING: readonly never[] = [];

/** "over": the upstream's answer has ended, failed, or was closed by the gateway. */
type EventStreamState = "opening" | "streaming" | "over";

const TRANSITIONS: Readonly<Record<EventStreamState, readonly EventStreamState[]>> = {
	opening: ["streaming", "over"],
	streaming: ["over"],
	over: [],
};

/** The members of an attempt that its stream still needs after the headers. */
export type EventsOwner = Pick<Attempt, "replica" | "guard" | "answered" | "succeed" | "fail" | "close">;

/** Events of a streamed answer. A class, because closures would be 15 more objects per open stream. */
export class EventStream<Chunk extends OutputChunk> implements Omit<AnswerStream<Chunk>, "replica"> {
	readonly #clock: Clock;
	readonly #attempt: EventsOwner;
	readonly #wire: StreamWire<Chunk>;
	readonly #reader: ReturnType<StreamWire<Chunk>["reader"]>;
	readonly #events = new SseReader();
	#source: ReadableStreamDefaultReader<Uint8Array> | undefined;
	#state: EventStreamState = "opening";
	/** Set if the server answered unstreamed; its `usage` is undefined if the answer reported none. */
	#whole: { readonly usage: ReportedUsage | undefined } | undefined;
	/** A failure, held back until the chunks that arrived before it are delivered. */
	#failure: UpstreamFailure | undefined;
	readonly #bytesMax: number;
	#streamBytes = 0;
	#waiting: Uint8Array | undefined;
	readonly #size = { events: 0, bytes: 0 };

	constructor(clock: Clock, attempt: EventsOwner, wire: StreamWire<Chunk>, bytesMax = STREAM_BYTES_MAX) {
		this.#clock = clock;
		this.#attempt = attempt;
		this.#wire = wire;
		this.#bytesMax = bytesMax;
		this.#reader = wire.reader(attempt.replica.dialect);
	}

	/**
	 * Sends the request and returns the first chunks. After the headers only the caller closes the stream; the client's
	 * signal is ignored. Not an async function, which would keep the request's body in memory.
	 */
	send(attempt: Attempt, body: string | FormData): Promise<readonly Chunk[] | null> {
		return this.#first(attempt, attempt.post({ path: this.#wire.path, body }, "text/event-stream"));
	}

	/** Continues an answer whose first bytes have already been read. */
	open({ source, first }: OpenedBody): void {
		this.#source = source;
		this.#waiting = first;
		// The gateway may have closed the stream while the request was being sent.
		if (this.#state === "opening") this.#enter("streaming");
	}

	arrives(): Promise<ReadResult> {
		if (this.#failure !== undefined) return Promise.reject(this.#failure);
		if (this.#state === "over") return Promise.resolve(NO_MORE);
		const { guard } = this.#attempt;
		if (this.#reader.finished()) guard.waitsForEnd(this.#reader.usageIsFinal() ? COUNTED_WAIT_MS : UNCOUNTED_WAIT_MS);
		else guard.waitStarts();
		if (this.#waiting !== undefined) return this.#step();
		assert(this.#source !== undefined, "the first chunks are read by `next`");
		return this.#source.read();
	}

	async #first(attempt: Attempt, turn: undefined | Promise<void>): Promise<readonly Chunk[] | null> {
		this.#attempt.guard.waitStarts();
		try {
			const whole = await this.#answer(attempt, turn);
			if (whole !== undefined) return this.#delivered([whole]);
		} catch (error) {
			throw this.#broke(error);
		}
		return this.next();
	}

	async next(): Promise<readonly Chunk[] | null> {
		for (;;) {
			let arrived: ReadResult;
			try {
				arrived = await this.arrives();
			} catch (error) {
				arrived = this.brokeOff(error);
			}
			const chunks = this.take(arrived);
			if (chunks !== undefined) return chunks;
		}
	}

	take(arrived: ReadResult): readonly Chunk[] | null | undefined {
		if (arrived === NO_MORE) return null;
		const { done, value } = arrived;
		try {
			if (value !== undefined && value.byteLength > STEP_BYTES) {
				this.#waiting = value;
				return undefined;
			}
			const payloads = done ? this.#events.end() : this.#events.push(this.#counted(value));
			const anything = payloads.length > 0;
			const chunks = anything ? this.#accept(payloads) : NOTHING;
			// Drops the payloads, so that their memory can be freed during the next read.
			payloads.length = 0;
			if (this.#failure === undefined) {
				if (this.#reader.ended() || (done && this.#reader.finished())) this.#finish(done);
				else if (done) this.#broke(crashFailure("the stream ended without its end"));
			}
			if (chunks.length > 0) return this.#delivered(chunks);
			if (this.#failure !== undefined) throw this.#failure;
			if (this.#state === "over") return null;
			if (anything) this.#attempt.guard.waitGoesOn();
			return undefined;
		} catch (error) {
			throw this.#broke(error);
		}
	}

	usage(): ReportedUsage | undefined {
		return this.#whole === undefined ? this.#reader.usage() : this.#whole.usage;
	}

	usageIsFinal(): boolean {
		return this.#whole === undefined ? this.#reader.usageIsFinal() : this.#whole.usage !== undefined;
	}

	tokensLikely(): number | undefined {
		return this.#attempt.replica.outputEstimator.tokensOf(this.#size);
	}

	close(): void {
		if (this.#state === "over") return;
		this.#enter("over");
		this.#attempt.close();
		this.#source?.cancel().catch(() => {});
	}

	async #step(): Promise<ReadResult> {
		await nextTurn();
		const all = this.#waiting;
		this.#waiting = (all?.byteLength ?? 0) > STEP_BYTES ? all?.subarray(STEP_BYTES) : undefined;
		return { done: false, value: all?.subarray(0, STEP_BYTES) };
	}

	/** Returns an unstreamed answer as one chunk; undefined for events, which some servers label as JSON or text. */
	async #answer(attempt: Attempt, turn: undefined | Promise<void>): Promise<Chunk | undefined> {
		if (turn) await turn;
		const response = await attempt.send();
		const refused = attempt.taken(response);
		if (refused) await refused;
		if (response.body === null) throw crashFailure("an answer without a body");
		const isEvents = (response.headers.get("content-type") ?? "").includes("event-stream");
		const opened = isEvents ? { source: bodySource(response), first: undefined } : await openBody(response);
		if (isEvents || isEventStream(opened)) {
			this.open(opened);
			attempt.handedOver();
			return undefined;
		}
		const text = await readText(response, WHOLE_BYTES_MAX, opened);
		const whole = this.#wire.whole(text, attempt.replica.dialect);
		this.#whole = { usage: whole.usage };
		this.#finish(true);
		return whole.chunk;
	}

	#counted(bytes: Uint8Array = NO_BYTES): Uint8Array {
		this.#streamBytes += bytes.byteLength;
		if (this.#streamBytes > this.#bytesMax) throw serverFailure("a stream beyond the limit");
		return bytes;
	}

	#accept(payloads: readonly string[]): Chunk[] {
		const chunks: Chunk[] = [];
		const size = this.#size;
		try {
			for (const payload of payloads) {
				const chunk = this.#reader.accept(payload);
				if (chunk === undefined) continue;
				chunks.push(chunk);
				size.bytes += chunk.outputBytes;
				if (chunk.outputBytes > 0) size.events += 1;
			}
		} catch (error) {
			this.#broke(error);
		}
		return chunks;
	}

	#delivered(chunks: readonly Chunk[]): readonly Chunk[] {
		this.#attempt.guard.waitEnds();
		this.#attempt.answered();
		return chunks;
	}

	#finish(bodyEnded: boolean): void {
		if (this.#state !== "over") this.#enter("over");
		this.#learn();
		this.#attempt.succeed(this.usage());
		if (!bodyEnded) this.#drain();
	}

	/** Skips reasoning models: servers may count reasoning without sending it, which would distort tokens per event. */
	#learn(): void {
		const { completionTokens, reasoningTokens } = this.#reader.usage() ?? {};
		if (this.#reader.usageIsFinal() && completionTokens !== undefined && reasoningTokens === 0)
			this.#attempt.replica.outputEstimator.learn(completionTokens, this.#size);
	}

	/** Reads the body's end in the background, so that the connection can be reused. */
	#drain(): void {
		const { guard } = this.#attempt;
		const cancel = this.#clock.after(DRAIN_MS, () => guard.abort());
		this.#source?.read().then(
			({ done }) => {
				cancel();
				if (!done) guard.abort();
			},
			() => cancel(),
		);
	}

	/**
	 * Decides whether an answer without an end marker is complete, since some servers never send one. It is complete if
	 * all choices have a finish reason, even if silence or a broken connection ends it.
	 */
	brokeOff(error: unknown): ReadResult {
		const { kind } = this.#attempt.guard.failureOf(error);
		const isEnd = (kind === "died" || kind === "timeout") && this.#reader.finished();
		if (this.#state !== "streaming" || !isEnd) throw this.#broke(error);
		this.#finish(true);
		return NO_MORE;
	}

	#enter(state: EventStreamState): void {
		assert(TRANSITIONS[this.#state].includes(state), "a stream opens once and is over once");
		this.#state = state;
	}

	#broke(error: unknown): UpstreamFailure {
		if (this.#failure !== undefined) return this.#failure;
		if (this.#state !== "over") this.#enter("over");
		this.#failure = this.#attempt.fail(error);
		this.#source?.cancel().catch(() => {});
		return this.#failure;
	}
}
