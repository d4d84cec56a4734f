import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { UpstreamFailure } from "../../upstream/call/failure.ts";
import type { AnswerStream, OutputChunk, ReadResult } from "../../upstream/call/stream-wire.ts";
import type { CountedReply } from "../../upstream/call/unary.ts";
import { type Bill, endingForError } from "../bill/bill.ts";
import { IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "../connection.ts";
import { faultStatus, toFault } from "../error-body.ts";
import { KEEP_ALIVE_COMMENT } from "../generated-text.ts";
import { answerHeaders } from "../headers.ts";
import { createCallContext, requestLogFields, type ServeDeps, type ServedRequest } from "./context.ts";
import { recordDelivery } from "./delivery.ts";
import type { EndpointInput, InferenceEndpoint } from "./endpoint.ts";
import { RunningStream } from "./streaming.ts";

/** Streams an admitted request. Before the status is sent, a failure settles and rejects; later it becomes an event. */
export async function streamAnswer<Input extends EndpointInput, Chunk extends OutputChunk>(
	deps: ServeDeps,
	endpoint: Pick<InferenceEndpoint<never, Input, CountedReply, Chunk>, "streamed" | "promptOf">,
	exchange: ServedRequest<Input>,
): Promise<Response> {
	const { streamed } = endpoint;
	assert(streamed !== undefined, "an endpoint without streams reads no request for one");
	const { connection, requestId } = exchange.context;
	const streaming = new RunningStream(deps, exchange, streamed.relay(exchange));
	try {
		const abort = new AbortController();
		streaming.abort = abort;
		streaming.listen();
		stopIfSettled(streaming);
		const { holdStatusMs } = streaming.limits;
		// While the status is held back for long, only the upstream's deadlines limit the silence.
		connection.setIdleTimeout(holdStatusMs < STREAM_TIMEOUT_S * 1000 ? STREAM_TIMEOUT_S : 0);
		streaming.upstream = deps.upstreams.open(
			exchange.model,
			streamed.call(exchange, createCallContext(deps, exchange, endpoint, abort.signal)),
		);
		streaming.first = streaming.upstream.next();
		const arrived = await arrivedWithin(deps.clock, streaming.first, holdStatusMs);
		stopIfSettled(streaming);
		streaming.enter("streaming");
		// The cast is needed because the DOM's types, which apply here too, lack the runtime's direct streams.
		const source = new EventsOut(streaming, arrived) as unknown as UnderlyingDefaultSource<Uint8Array>;
		return new Response(new ReadableStream(source), {
			status: 200,
			headers: answerHeaders(requestId, exchange.input.ignored, "text/event-stream; charset=utf-8"),
		});
	} catch (error) {
		const fault = streaming.halted ?? toFault(error);
		if (!streaming.isOver) await streaming.settle(endingForError(error), faultStatus(fault));
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
		throw fault;
	}
}

/** Throws if the stream was settled (the client left or the process stopped) before its status was sent. */
function stopIfSettled<Chunk>(streaming: RunningStream<Chunk>): void {
	if (streaming.isOver) throw new UpstreamFailure("aborted", { private: "settled before it was opened" });
}

/** Holds the HTTP status back until the first event, at most `limitMs`. Resolves with true if the event arrived. */
function arrivedWithin(clock: Clock, first: Promise<unknown>, limitMs: number): Promise<boolean> {
	return new Promise((resolve, reject) => {
		const cancel = clock.after(limitMs, () => resolve(false));
		first.then(
			() => {
				cancel();
				resolve(true);
			},
			(error) => {
				cancel();
				reject(error);
			},
		);
	});
}

/** Body of the response, written to the socket without a queue. A class, because it allocates less than closures. */
class EventsOut<Chunk extends OutputChunk> implements Bun.DirectUnderlyingSource {
	readonly type = "direct";
	readonly #streaming: RunningStream<Chunk>;
	readonly #arrived: boolean;

	constructor(streaming: RunningStream<Chunk>, arrived: boolean) {
		this.#streaming = streaming;
		this.#arrived = arrived;
	}

	/** Called per read if this process reads the body, so only the first call starts the stream. */
	pull(client: ReadableStreamDirectController): void {
		const streaming = this.#streaming;
		if (streaming.client !== undefined) return;
		streaming.client = client;
		if (streaming.unsent !== undefined) {
			streaming.close(streaming.unsent);
			return;
		}
		if (!this.#arrived) {
			// Before the body's first byte Bun sends only part of the headers, so the client would wait for the status.
			streaming.context.connection.setIdleTimeout(STREAM_TIMEOUT_S);
			void streaming.write(KEEP_ALIVE_COMMENT);
		}
		void pump(streaming);
	}

	cancel(): void {
		this.#streaming.leave();
	}
}

/** Relays the stream: at most one write per read from the upstream server. Never rejects. */
async function pump<Chunk extends OutputChunk>(streaming: RunningStream<Chunk>): Promise<void> {
	const { upstream, first, admitted } = streaming;
	const { hold } = admitted;
	try {
		assert(upstream !== undefined && first !== undefined, "what is pumped comes from an upstream");
		let next: readonly Chunk[] | null | undefined = await first;
		streaming.first = undefined;
		streaming.abort = undefined;
		while (!streaming.isOver) {
			if (next === null) return await finish(streaming);
			if (next !== undefined) {
				const text = take(streaming, upstream, next);
				const durable = hold.ledger.durable(hold);
				if (durable) await durable;
				if (streaming.isOver) return;
				if (text !== "") {
					const taken = streaming.write(text);
					streaming.countGap();
					// Backpressure: stops reading from the upstream server until the client has read the text.
					if (taken) await taken;
					else streaming.readerTook(streaming.lastWriteMs);
				}
			}
			// Drops the chunks, so that their memory can be freed during the next read.
			next = undefined;
			let arrived: ReadResult;
			try {
				// Awaits the runtime's own promise, because a wrapper would allocate one more promise per event.
				arrived = await upstream.arrives();
			} catch (error) {
				arrived = upstream.brokeOff(error);
			}
			if (!streaming.isOver) next = upstream.take(arrived);
		}
	} catch (error) {
		if (!streaming.isOver) await streaming.fail(endingForError(error), toFault(error));
	}
}

/** Counts the chunks, records their cost in the journal, and returns their text. */
function take<Chunk extends OutputChunk>(
	{ deps, context, admitted, relay, delivery }: RunningStream<Chunk>,
	upstream: AnswerStream<Chunk>,
	chunks: readonly Chunk[],
): string {
	recordDelivery(delivery, admitted, relay, chunks, upstream);
	delivery.firstMs ??= deps.clock.monotonicMs() - context.startedMs;
	return relay.chunks(chunks);
}

/** Ends a complete stream. The settlement is durable before the last bytes are sent. */
async function finish<Chunk>(streaming: RunningStream<Chunk>): Promise<void> {
	let ended: Promise<void> | undefined;
	const settled = streaming.settle("finished", 200, (bill) => (ended = end(streaming, bill)));
	if (settled) await settled;
	await ended;
}

async function end<Chunk>(streaming: RunningStream<Chunk>, bill: Bill): Promise<void> {
	const { deps, relay, context, admitted } = streaming;
	const { hold } = admitted;
	try {
		const text = relay.end(bill);
		const recorded = hold.ledger.settledDurable(hold);
		if (recorded) await recorded;
		streaming.close(text);
	} catch (error) {
		// Closes the stream here too, because no other code closes a settled stream.
		deps.telemetry.log.error("a settled stream could not be ended", { ...requestLogFields(context), error });
		streaming.close(relay.fail(toFault(error), bill, streaming.context.connection.language));
	}
}
