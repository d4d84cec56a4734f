/** One call to one replica, streamed or whole. Owns the replica's place and the connection until the end. */

import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { createChatCollector } from "../chat/chat-collect.ts";
import { createChatReader } from "../chat/chat-reader.ts";
import { chunkOfReply, readChatReply } from "../chat/chat-reply.ts";
import type { Ticket } from "../replicas/pool.ts";
import { type ChatChunk, type ChatReply, type ChatStream, type TokenUsage, UpstreamFailure } from "../reply.ts";
import { createCallGuard } from "./guard.ts";
import { ANSWER_BYTES_MAX, assertAnswered, type CallDeps, discard, postUpstream, reachable, readText } from "./post.ts";
import { createSseReader } from "./sse-reader.ts";
import type { StreamWire } from "./stream-wire.ts";

export interface AttemptOptions {
	readonly limits: ServiceLimits;
	/** The request in the replica's dialect: JSON text, or a form. */
	readonly body: string | FormData;
	readonly requestId: string;
	readonly signal: AbortSignal;
	/** Monotonic time at which the request began, attempts before this one included. */
	readonly startedMs: number;
	readonly freshConnection: boolean;
}

export type Attempt<Chunk> = Omit<ChatStream<Chunk>, "replica">;

const CHAT_PATH = "/chat/completions";
/** How long a stream may take from its end marker to the end of its body before the connection is given up. */
const DRAIN_MS = 1_000;
/** The longest stream, comments and framing included; a longer one is a failure. */
const STREAM_BYTES_MAX = 512 * 1024 * 1024;

export const CHAT_WIRE: StreamWire<ChatChunk> = {
	path: CHAT_PATH,
	reader: createChatReader,
	whole(text, dialect) {
		const reply = readChatReply(text, dialect);
		return { chunk: chunkOfReply(reply), usage: reply.usage };
	},
};

/** Sends a streamed request before it returns. `next` is to be called at once, so that no rejection goes unheard. */
export function openAttempt<Chunk>(
	deps: CallDeps,
	ticket: Ticket,
	options: AttemptOptions,
	wire: StreamWire<Chunk>,
): Attempt<Chunk> {
	const { replica } = ticket;
	const guard = createCallGuard(deps.clock, {
		...options,
		events: true,
		reachable: () => reachable(deps, replica, options.limits),
	});
	const chat = wire.reader(replica.dialect);
	const events = createSseReader();
	const { body, requestId, freshConnection } = options;
	const post = { path: wire.path, body, accept: "text/event-stream", requestId, freshConnection } as const;
	const answer = postUpstream(deps, replica, guard, post);
	let response: Response | undefined;
	let source: ReadableStreamDefaultReader<Uint8Array> | undefined;
	/** Usage of an answer that came whole. */
	let wholeUsage: TokenUsage | undefined;
	let answeredWhole = false;
	/** The upstream said its last word, or we hung up. */
	let over = false;
	/** Why it went wrong; kept back while chunks that came before it are on their way out. */
	let failure: UpstreamFailure | undefined;
	let begun = false;
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
					if (chat.ended() || (done && chat.complete())) finish(done);
					else if (done) fall(new UpstreamFailure("died", { private: "the stream ended without its end" }));
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
		response = await answer;
		guard.headersCame();
		await assertAnswered(response, replica);
		if (response.body === null) throw new UpstreamFailure("died", { private: "an answer without a body" });
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
		if (streamBytes > STREAM_BYTES_MAX) throw new UpstreamFailure("failed", { private: "a stream beyond the limit" });
		return bytes;
	}

	function accept(payloads: readonly string[]): Chunk[] {
		const chunks: Chunk[] = [];
		try {
			for (const payload of payloads) {
				const chunk = chat.accept(payload);
				if (chunk !== undefined) chunks.push(chunk);
			}
		} catch (error) {
			fall(error);
		}
		return chunks;
	}

	function delivered(chunks: readonly Chunk[]): readonly Chunk[] {
		guard.waitEnds();
		if (!begun) {
			begun = true;
			ticket.firstEvent();
		}
		return chunks;
	}

	function finish(bodyEnded: boolean): void {
		over = true;
		guard.end();
		ticket.release("ok");
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
		failure = guard.failureOf(error);
		hangUp();
		ticket.release(guard.outcomeOf(failure));
		return failure;
	}

	function hangUp(): void {
		over = true;
		guard.abort();
		guard.end();
		if (source === undefined) discard(response);
		else source.cancel().catch(() => {});
	}

	return {
		next,
		usage: () => (answeredWhole ? wholeUsage : chat.usage()),
		usageIsFinal: () => (answeredWhole ? wholeUsage !== undefined : chat.usageIsFinal()),
		close() {
			if (over) return;
			hangUp();
			ticket.release("neutral");
		},
	};
}

/** An unstreamed call. Rejects with UpstreamFailure; the place is free again either way. */
export async function callChat(deps: CallDeps, ticket: Ticket, options: AttemptOptions): Promise<ChatReply> {
	const { replica } = ticket;
	const guard = createCallGuard(deps.clock, {
		...options,
		events: false,
		reachable: () => reachable(deps, replica, options.limits),
	});
	const { body, requestId, freshConnection } = options;
	let response: Response | undefined;
	try {
		const post = { path: CHAT_PATH, body, accept: "application/json", requestId, freshConnection } as const;
		response = await postUpstream(deps, replica, guard, post);
		guard.headersCame();
		await assertAnswered(response, replica);
		const reply = readChatReply(await readText(response, ANSWER_BYTES_MAX), replica.dialect);
		ticket.release("ok");
		return reply;
	} catch (error) {
		const failure = guard.failureOf(error);
		guard.abort();
		discard(response);
		ticket.release(guard.outcomeOf(failure));
		throw failure;
	} finally {
		guard.end();
	}
}

/** A whole answer by way of a stream. */
export async function collectChat(deps: CallDeps, ticket: Ticket, options: AttemptOptions): Promise<ChatReply> {
	const attempt = openAttempt(deps, ticket, options, CHAT_WIRE);
	const collector = createChatCollector();
	for (let chunks = await attempt.next(); chunks !== null; chunks = await attempt.next()) {
		for (const chunk of chunks) collector.add(chunk);
	}
	return { ...collector.reply(), usage: attempt.usage() };
}
