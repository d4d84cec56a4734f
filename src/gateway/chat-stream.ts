import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import type { Ending } from "../ledger/event.ts";
import { minUsd } from "../money/nano-usd.ts";
import type { ChatChunk, ChatStream, TokenUsage } from "../upstream/reply.ts";
import { UpstreamFailure } from "../upstream/reply.ts";
import type { Bill } from "./chat-bill.ts";
import { billOf, costOf, FREE_BILL, outcomeOf } from "./chat-bill.ts";
import { callOf } from "./chat-call.ts";
import { createChatEvents, KEEP_ALIVE_COMMENT } from "./chat-events.ts";
import { CLIENT_LEFT_STATUS, faultOf, statusOf } from "./error-body.ts";
import type { Exchange, ExchangeDeps } from "./exchange.ts";
import { IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "./exchange.ts";
import { answerHeaders } from "./headers.ts";
import { usageRecord } from "./usage-record.ts";

/** Output tokens between two records of the journal that bound what was delivered. */
const PROGRESS_TOKENS = 64;

type Next = readonly ChatChunk[] | null;

/**
 * Streams one admitted chat. Rejects, with the request settled, if it fails while the status can still say so; after
 * that a failure is an event of the stream. Every way out settles exactly once: finished, upstream failed, died or
 * silent, client left, shutdown.
 */
export async function streamChat(deps: ExchangeDeps, exchange: Exchange): Promise<Response> {
	const { admission, clock, log } = deps;
	const { connection, model, ask, measure, admitted } = exchange;
	const { hold } = admitted;
	const { ledger } = hold;
	const limits = deps.limits();
	const left = new AbortController();
	const events = createChatEvents(
		{ id: exchange.answerId, createdS: exchange.createdS, model: model.id },
		ask.includeUsage,
	);
	let stream: ChatStream | undefined;
	let bill: Bill | undefined;
	let outputBytes = 0;
	let delivered = false;
	let firstMs: number | null = null;
	let lastWriteMs = exchange.startedMs;
	let controller: ReadableStreamDefaultController<string> | undefined;

	const sinceStart = () => clock.monotonicMs() - exchange.startedMs;

	/** The latch: signal, `cancel` and a failed read arrive in any combination. */
	function settle(ending: Ending, status: number): Bill {
		if (bill) return bill;
		bill = delivered || ending === "finished" ? billOf(model, measure, stream?.usage(), outputBytes) : FREE_BILL;
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
			stream?.close();
			end("shutdown", new Fault("service_unavailable", "The service is restarting.", { retryAfterS: 1 }));
		},
	};

	function write(to: ReadableStreamDefaultController<string>, text: string): void {
		lastWriteMs = clock.monotonicMs();
		to.enqueue(text);
	}

	/** Write-ahead: the journal bounds the cost of these chunks before the client gets them. */
	function recordProgress(): void {
		const usage = stream?.usage();
		const now = billOf(model, measure, usage, outputBytes);
		if (delivered && now.cost <= hold.bound) return;
		// Every token stands for at least one byte, so bytes bound what is not counted yet.
		const bound: TokenUsage = {
			...now.usage,
			completionTokens: (usage?.completionTokens ?? outputBytes) + PROGRESS_TOKENS,
		};
		const { promptTokens, completionTokens } = now.usage;
		const most = minUsd(hold.reserved, costOf(model, bound));
		ledger.progress(hold, {
			delivered: minUsd(now.cost, most),
			bound: most,
			prompt: promptTokens,
			completion: completionTokens,
		});
	}

	/** The text of what arrived, once its cost is on record; empty if nothing is to be written yet. */
	function take(chunks: readonly ChatChunk[]): string {
		for (const chunk of chunks) outputBytes += chunk.outputBytes;
		recordProgress();
		if (!delivered) firstMs = sinceStart();
		delivered = true;
		return events.chunks(chunks);
	}

	async function finish(to: ReadableStreamDefaultController<string>): Promise<void> {
		const { usage, cost } = settle("finished", 200);
		const text = events.end(usageRecord(usage, cost));
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
		const { usage, cost } = settle(ending, statusOf(fault));
		if (controller) closeWith(controller, events.fail(fault, usageRecord(usage, cost)));
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
	async function pull(to: ReadableStreamDefaultController<string>, first?: Promise<Next>): Promise<void> {
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

	const { signal } = connection.request;
	if (signal.aborted) leave();
	else signal.addEventListener("abort", leave, { once: true });
	connection.setIdleTimeout(STREAM_TIMEOUT_S);
	let first: Promise<Next>;
	try {
		stream = deps.upstreams.openChat(model, callOf(exchange, left.signal));
		first = stream.next();
		await firstOrLimit(first, limits.holdStatusMs);
	} catch (error) {
		const fault = faultOf(error);
		settle(endingOf(error), statusOf(fault));
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
		throw fault;
	}
	deps.openStreams.add(open);

	/** Holds the status back for the first event, so that a failure can still say so; not longer than the limit. */
	function firstOrLimit(event: Promise<Next>, limitMs: number): Promise<void> {
		return new Promise((resolve, reject) => {
			const cancel = clock.after(limitMs, resolve);
			event.then(
				() => (cancel(), resolve()),
				(error) => (cancel(), reject(error)),
			);
		});
	}

	let begun = false;
	const body = new ReadableStream<string>({
		start(to) {
			controller = to;
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
