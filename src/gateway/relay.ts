import type { PromptMeasure } from "../admission/prompt-bound.ts";
import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import type { Ending } from "../ledger/event.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { minUsd } from "../money/nano-usd.ts";
import { UpstreamFailure } from "../upstream/call/failure.ts";
import type { AnswerStream } from "../upstream/call/stream-wire.ts";
import type { ChatChunk } from "../upstream/chat/chat-answer.ts";
import { chatStream } from "../upstream/chat/chat-call.ts";
import type { TokenUsage } from "../upstream/usage.ts";
import type { Bill, OutputSize } from "./bill.ts";
import { billOf, costOf, FREE_BILL, outcomeOf } from "./bill.ts";
import { callOf } from "./chat/chat-call.ts";
import { CLIENT_LEFT_STATUS, faultOf, statusOf } from "./error-body.ts";
import type { Exchange, ExchangeDeps } from "./exchange.ts";
import { IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "./exchange.ts";
import { answerHeaders } from "./headers.ts";
import type { ChatEvents } from "./stream-events.ts";
import { createChatEvents, KEEP_ALIVE_COMMENT } from "./stream-events.ts";
import { usageRecord } from "./usage-record.ts";

/** Output between two records of the journal that bound what was delivered: tokens, or bytes where nobody counts. */
const PROGRESS_TOKENS = 64;
const PROGRESS_BYTES = 256;

type Next<Chunk> = readonly Chunk[] | null;

/** What is particular to one kind of streamed answer: how it is asked for, written and billed. */
export interface Relay<Chunk> {
	open(signal: AbortSignal): AnswerStream<Chunk>;
	/** The text of these chunks; empty if nothing of them is to be written yet. */
	chunks(chunks: readonly Chunk[]): string;
	/** The last events of a stream that came to its end. */
	end(bill: Bill): string;
	/** The last events of one that did not: the error, then what was charged. */
	fail(fault: Fault, bill: Bill): string;
	/** The bill for what was delivered so far; `finished` if that is all. */
	bill(usage: TokenUsage | undefined, output: OutputSize, finished: boolean): Bill;
	/** What it costs at most to deliver up to `output` tokens, or bytes where nobody counts. */
	costAt(now: Bill, output: number): NanoUsd;
}

/** A request that is answered by a stream. */
export type StreamedExchange = Pick<Exchange, "connection" | "requestId" | "startedMs" | "model" | "admitted"> & {
	readonly ask: { readonly ignored: readonly string[] };
};

/** Streams one admitted chat. */
export function streamChat(deps: ExchangeDeps, exchange: Exchange): Promise<Response> {
	const { answerId, createdS, model, ask, measure } = exchange;
	const events = createChatEvents({ id: answerId, createdS, model: model.id }, ask.includeUsage);
	return streamAnswer<ChatChunk>(deps, exchange, {
		open: (signal) => deps.upstreams.open(model, chatStream(model, callOf(exchange, signal))),
		...tokenRelay(exchange, measure, events),
	});
}

/** The writing and the billing of an answer that is priced in tokens. */
export function tokenRelay<Chunk>(
	{ model, admitted }: Pick<Exchange, "model" | "admitted">,
	measure: PromptMeasure,
	events: ChatEvents<Chunk>,
): Omit<Relay<Chunk>, "open"> {
	const { completion } = admitted.request.most;
	return {
		chunks: events.chunks,
		end: (bill) => events.end(usageRecord(bill.usage, bill.cost)),
		fail: (fault, bill) => events.fail(fault, usageRecord(bill.usage, bill.cost)),
		bill: (usage, output) => billOf(model, measure, usage, output, completion),
		// Every token stands for at least one byte, so bytes bound what nobody counts.
		costAt: (now, output) => costOf(model, { ...now.usage, completionTokens: output }),
	};
}

/**
 * Streams one admitted request. Rejects, with the request settled, if it fails while the status can still say so; after
 * that a failure is an event of the stream. Every way out settles exactly once: finished, upstream failed, died or
 * silent, client left, shutdown.
 */
export async function streamAnswer<Chunk extends { readonly outputBytes: number }>(
	deps: ExchangeDeps,
	exchange: StreamedExchange,
	relay: Relay<Chunk>,
): Promise<Response> {
	const { admission, clock, log } = deps;
	const { connection, model, admitted } = exchange;
	const { hold } = admitted;
	const { ledger } = hold;
	const limits = deps.limits();
	const left = new AbortController();
	let stream: AnswerStream<Chunk> | undefined;
	let bill: Bill | undefined;
	const size = { bytes: 0, chunks: 0 };
	let delivered = false;
	let firstMs: number | null = null;
	let lastWriteMs = exchange.startedMs;
	/** Output from which on the journal's bound does not hold any more, counted as `recordedPrompt` says. */
	let recordAt = -1;
	/** Prompt tokens by the upstream's count when the last record was written; undefined if there was no count. */
	let recordedPrompt: number | undefined;
	/** Why the service ended it. */
	let halted: Fault | undefined;
	let controller: ReadableStreamDefaultController<string> | undefined;

	const sinceStart = () => clock.monotonicMs() - exchange.startedMs;

	/** The latch: signal, `cancel` and a failed read arrive in any combination. */
	function settle(ending: Ending, status: number): Bill {
		if (bill) return bill;
		const finished = ending === "finished";
		bill = delivered || finished ? relay.bill(stream?.usage(), size, finished) : FREE_BILL;
		admission.settle(
			admitted,
			outcomeOf(bill, { ending, status, replica: stream?.replica(), firstMs, totalMs: sinceStart() }),
		);
		deps.openStreams.delete(open);
		connection.request.signal.removeEventListener("abort", leave);
		return bill;
	}

	function leave(): void {
		if (bill) return;
		left.abort();
		stream?.close();
		settle("client_left", CLIENT_LEFT_STATUS);
	}

	const open = {
		keepAlive(nowMs: number) {
			if (!controller || bill || nowMs - lastWriteMs < limits.keepAliveCommentMs) return;
			// A reader that takes nothing gets no comments either, so that its connection times out.
			if ((controller.desiredSize ?? 0) > 0) write(controller, KEEP_ALIVE_COMMENT);
		},
		shutDown() {
			if (bill) return;
			halted = new Fault("service_unavailable", "The service is restarting.", { retryAfterS: 1 });
			left.abort();
			stream?.close();
			if (controller) end("shutdown", halted);
			else settle("shutdown", statusOf(halted));
		},
	};

	function write(to: ReadableStreamDefaultController<string>, text: string): void {
		lastWriteMs = clock.monotonicMs();
		to.enqueue(text);
	}

	/** Write-ahead: the journal bounds the cost of these chunks before the client gets them. */
	function recordProgress(): void {
		const usage = stream?.usage();
		const output = usage === undefined ? size.bytes : usage.completionTokens;
		if (output <= recordAt && usage?.promptTokens === recordedPrompt) return;
		recordAt = output + (usage === undefined ? PROGRESS_BYTES : PROGRESS_TOKENS);
		recordedPrompt = usage?.promptTokens;
		const now = relay.bill(usage, size, false);
		const { promptTokens, completionTokens } = now.usage;
		const most = minUsd(hold.reserved, relay.costAt(now, recordAt));
		ledger.progress(hold, {
			delivered: minUsd(now.cost, most),
			bound: most,
			prompt: promptTokens,
			completion: completionTokens,
		});
	}

	/** The text of what arrived, once its cost is on record; empty if nothing is to be written yet. */
	function take(chunks: readonly Chunk[]): string {
		for (const { outputBytes } of chunks) {
			size.bytes += outputBytes;
			if (outputBytes > 0) size.chunks += 1;
		}
		recordProgress();
		if (!delivered) firstMs = sinceStart();
		delivered = true;
		return relay.chunks(chunks);
	}

	async function finish(to: ReadableStreamDefaultController<string>): Promise<void> {
		const text = relay.end(settle("finished", 200));
		const recorded = ledger.settledDurable(hold);
		if (recorded) await recorded;
		closeWith(to, text);
	}

	/** Ends a stream whose status is out. Nothing may throw here: the runtime would cut the connection silently. */
	function end(ending: Ending, fault: Fault): void {
		log.info("a stream ended early", {
			request: exchange.requestId,
			model: model.id,
			ending,
			code: fault.code,
			detail: fault.private,
		});
		const charged = settle(ending, statusOf(fault));
		if (controller) closeWith(controller, relay.fail(fault, charged));
	}

	function closeWith(to: ReadableStreamDefaultController<string>, text: string): void {
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
		try {
			to.enqueue(text);
			to.close();
		} catch {
			// The client left in this very moment; its request is settled.
		}
	}

	/** One read of the upstream becomes one write, unless all of it is held back. */
	async function pull(to: ReadableStreamDefaultController<string>, first?: Promise<Next<Chunk>>): Promise<void> {
		assert(stream !== undefined, "a stream was opened");
		try {
			for (let next = await (first ?? stream.next()); !bill; next = await stream.next()) {
				if (next === null) return await finish(to);
				const text = take(next);
				const durable = ledger.durable(hold);
				if (durable) await durable;
				if (bill) return;
				if (text !== "") return write(to, text);
			}
		} catch (error) {
			if (!bill) end(endingOf(error), faultOf(error));
		}
	}

	deps.openStreams.add(open);
	const { signal } = connection.request;
	if (signal.aborted) leave();
	else signal.addEventListener("abort", leave, { once: true });
	let first: Promise<Next<Chunk>>;
	let arrived = false;
	try {
		// The deadlines of the upstream end the silence before the first byte, however long they are.
		connection.setIdleTimeout(limits.holdStatusMs < STREAM_TIMEOUT_S * 1000 ? STREAM_TIMEOUT_S : 0);
		stream = relay.open(left.signal);
		first = stream.next();
		await firstOrLimit(first, limits.holdStatusMs);
	} catch (error) {
		const fault = halted ?? faultOf(error);
		settle(endingOf(error), statusOf(fault));
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
		throw fault;
	}

	/** Holds the status back for the first event, so that a failure can still say so; not longer than the limit. */
	function firstOrLimit(event: Promise<Next<Chunk>>, limitMs: number): Promise<void> {
		return new Promise((resolve, reject) => {
			const cancel = clock.after(limitMs, resolve);
			event.then(
				() => {
					arrived = true;
					cancel();
					resolve();
				},
				(error) => {
					cancel();
					reject(error);
				},
			);
		});
	}

	let begun = false;
	const body = new ReadableStream<string>({
		start(to) {
			controller = to;
			if (arrived) return;
			// Without a first byte the runtime sends a piece of the header only, and the client waits for the rest.
			connection.setIdleTimeout(STREAM_TIMEOUT_S);
			write(to, KEEP_ALIVE_COMMENT);
		},
		pull(to) {
			const opening = begun ? undefined : first;
			begun = true;
			return pull(to, opening);
		},
		cancel: leave,
	});
	return new Response(body, { status: 200, headers: answerHeaders(exchange, "text/event-stream; charset=utf-8") });
}

/** What a failure means for the bill. */
export function endingOf(error: unknown): Ending {
	if (!(error instanceof UpstreamFailure)) return "upstream_failed";
	if (error.kind === "died") return "upstream_died";
	if (error.kind === "timeout") return "upstream_silent";
	return error.kind === "aborted" ? "client_left" : "upstream_failed";
}
