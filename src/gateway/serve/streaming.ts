import type { Admitted } from "../../admission/admission.ts";
import { assert } from "../../base/assert.ts";
import { Fault } from "../../base/fault.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { Ending } from "../../ledger/event.ts";
import type { AnswerStream } from "../../upstream/call/stream-wire.ts";
import type { Bill } from "../bill/bill.ts";
import { FREE_BILL, outcomeOf, settledBill } from "../bill/bill.ts";
import { IDLE_TIMEOUT_S } from "../connection.ts";
import { CLIENT_LEFT_STATUS, restarting, statusOf } from "../error-body.ts";
import { KEEP_ALIVE_COMMENT } from "../stream-events.ts";
import { type Exchange, logFields, type RequestContext, type ServeDeps } from "./context.ts";
import { coverExcess } from "./cover-excess.ts";
import type { Delivery } from "./delivery.ts";
import { createDelivery } from "./delivery.ts";
import type { Relay } from "./endpoint.ts";
import type { OpenStream } from "./open-streams.ts";

/**
 * Where a streamed answer is. Ways lead on and none leads back, so it is settled once, by whichever end comes first:
 * finished; upstream failed, died or silent; client left; shutdown.
 */
type StreamState =
	/** The status is held back, so that a failure can still say so. */
	| "opening"
	/** The status is out: a failure is an event of the stream. */
	| "streaming"
	/** The bill is made and passes the reservation: what covers that is brought here. Only a stop does not wait for it. */
	| "covering"
	/** The bill is paid; whatever arrives now changes nothing. */
	| "settled";

/** How long a stream may have waited for its reader, in all, before its place goes to a waiting request. */
export const READER_STALL_MS = 5_000;

const NEXT: Readonly<Record<StreamState, readonly StreamState[]>> = {
	opening: ["streaming", "covering", "settled"],
	streaming: ["covering", "settled"],
	covering: ["settled"],
	settled: [],
};

/** One streamed answer on its way. */
export interface Streaming<Chunk> {
	readonly deps: ServeDeps;
	readonly limits: ServiceLimits;
	/** Of its exchange, what is needed to the end: not what was asked. */
	readonly context: RequestContext;
	readonly admitted: Admitted;
	readonly relay: Relay<Chunk>;
	readonly delivery: Delivery;
	/** Ends the upstream's call before it answers, also before there is one. Undefined from the first event on: then `close` does. */
	abort: AbortController | undefined;
	state: StreamState;
	/** Undefined before the upstream is asked. */
	upstream: AnswerStream<Chunk> | undefined;
	/** What comes first, until it is there. */
	first: Promise<readonly Chunk[] | null> | undefined;
	/** Undefined until the runtime asks for the body. */
	client: ReadableStreamDirectController | undefined;
	/** Its last text, if it ended before that. */
	unsent: string | undefined;
	lastWriteMs: number;
	/** How long it has waited for its reader in all, and since when it does; undefined while the reader keeps up. */
	stalledMs: number;
	stalledSinceMs: number | undefined;
	/** When the reader had taken what was written last: from then on the upstream is waited for. */
	tookMs: number | undefined;
	/** Why the service ended it, if it did. */
	halted: Fault | undefined;
	/** Pays the bill that is made, with what is here; undefined outside `covering`. */
	pay: (() => void) | undefined;
	/** What could end it from outside; undefined before it is listened to. */
	listener: { letGo(): void } | undefined;
}

export function createStreaming<Chunk>(deps: ServeDeps, exchange: Exchange, relay: Relay<Chunk>): Streaming<Chunk> {
	return {
		deps,
		limits: deps.catalog.limits(),
		context: exchange.context,
		admitted: exchange.admitted,
		relay,
		delivery: createDelivery(),
		abort: undefined,
		state: "opening",
		upstream: undefined,
		first: undefined,
		client: undefined,
		unsent: undefined,
		lastWriteMs: exchange.context.startedMs,
		stalledMs: 0,
		stalledSinceMs: undefined,
		tookMs: undefined,
		halted: undefined,
		pay: undefined,
		listener: undefined,
	};
}

/** Takes the next state. Asserts that there is a way. */
export function enter<Chunk>(streaming: Streaming<Chunk>, state: StreamState): void {
	assert(NEXT[streaming.state].includes(state), "a stream is opened once and settled once");
	streaming.state = state;
}

/** Its bill is made. */
export function isOver<Chunk>({ state }: Streaming<Chunk>): boolean {
	return state === "covering" || state === "settled";
}

/** From now on the client's leaving and the end of the process reach it, until it is settled. */
export function listen<Chunk>(streaming: Streaming<Chunk>): void {
	const { signal } = streaming.context.connection.request;
	const listener = new Listener(streaming);
	streaming.listener = listener;
	if (signal.aborted) leave(streaming);
	else signal.addEventListener("abort", listener, ONCE);
	if (!isOver(streaming)) streaming.deps.clients.openStreams.add(listener);
}

const ONCE = { once: true } as const;

/** What a stream hears of from outside. A class, since there is one for each. */
class Listener<Chunk> implements OpenStream, EventListenerObject {
	readonly #streaming: Streaming<Chunk>;
	slot = 0;

	constructor(streaming: Streaming<Chunk>) {
		this.#streaming = streaming;
	}

	tick(nowMs: number): void {
		giveUpPlace(this.#streaming, nowMs);
		keepAlive(this.#streaming, nowMs);
	}

	shutDown(): void {
		shutDown(this.#streaming);
	}

	/** The client's signal aborts. */
	handleEvent(): void {
		leave(this.#streaming);
	}

	letGo(): void {
		this.#streaming.deps.clients.openStreams.delete(this);
		this.#streaming.context.connection.request.signal.removeEventListener("abort", this);
	}
}

/**
 * Makes the bill and ends the hold by it, then does `after` with the bill as it was charged, in the same turn. That is at
 * once, or where the bill passes the reservation when that is covered as far as there is credit: then it gives a promise.
 */
export function settle<Chunk>(
	streaming: Streaming<Chunk>,
	ending: Ending,
	status: number,
	after: (bill: Bill) => void = () => {},
): Promise<void> | undefined {
	const { deps, context, admitted, delivery, upstream } = streaming;
	const bill = delivery.firstMs === null && ending !== "finished" ? FREE_BILL : billOf(streaming, ending);
	const totalMs = deps.clock.monotonicMs() - context.startedMs;
	const facts = { ending, status, replica: upstream?.replica(), firstMs: delivery.firstMs, totalMs };
	const pay = (): void => {
		enter(streaming, "settled");
		streaming.listener?.letGo();
		after(settledBill(deps.admission.settle(admitted, outcomeOf(bill, facts))));
	};
	const covered = ending === "shutdown" ? undefined : coverExcess(admitted, bill.cost);
	if (covered === undefined) return void pay();
	enter(streaming, "covering");
	const stopped = Promise.withResolvers<void>();
	streaming.pay = () => {
		pay();
		// The runtime writes nothing more of a stream while somebody waits in it.
		stopped.resolve();
	};
	const paid = covered.then(() => {
		if (streaming.state === "covering") pay();
	});
	return Promise.race([paid, stopped.promise]);
}

/** A bill that cannot be made must not leave the hold open: then the journal's bound stands, as after a crash. */
function billOf<Chunk>(streaming: Streaming<Chunk>, ending: Ending): Bill {
	const { deps, context, admitted, relay, delivery, upstream } = streaming;
	try {
		return relay.bill(delivery.isCut ? delivery.usage : upstream?.usage(), delivery, ending === "finished");
	} catch (error) {
		deps.telemetry.log.error("a bill could not be made", { ...logFields(context), error });
		return { ...FREE_BILL, cost: admitted.hold.bound, basis: "estimated" };
	}
}

/** Signal and `cancel` arrive in any combination. */
export function leave<Chunk>(streaming: Streaming<Chunk>): void {
	if (isOver(streaming)) return;
	hangUp(streaming);
	settle(streaming, "client_left", CLIENT_LEFT_STATUS)?.catch((error) => {
		streaming.deps.telemetry.log.error("a stream could not be settled", { ...logFields(streaming.context), error });
	});
}

function shutDown<Chunk>(streaming: Streaming<Chunk>): void {
	if (streaming.state === "covering") streaming.pay?.();
	if (isOver(streaming)) return;
	const halted = restarting();
	streaming.halted = halted;
	hangUp(streaming);
	if (streaming.state === "streaming") void fail(streaming, "shutdown", halted);
	else void settle(streaming, "shutdown", statusOf(halted));
}

/** A place belongs to who waits for it rather than to a reader that has kept it waiting. */
function giveUpPlace<Chunk>(streaming: Streaming<Chunk>, nowMs: number): void {
	const { deps, admitted, stalledSinceMs, stalledMs } = streaming;
	if (stalledSinceMs === undefined || streaming.state !== "streaming") return;
	if (stalledMs + nowMs - stalledSinceMs < READER_STALL_MS) return;
	if (!deps.upstreams.contended(admitted.request.model.id)) return;
	void fail(streaming, "client_left", new Fault("request_timeout", "The answer was not read while others waited."));
}

function hangUp<Chunk>({ abort, upstream }: Streaming<Chunk>): void {
	abort?.abort();
	upstream?.close();
}

/** Ends a stream whose status is out. Nothing may throw here: the runtime would cut the connection silently. */
export function fail<Chunk>(streaming: Streaming<Chunk>, ending: Ending, fault: Fault): Promise<void> | undefined {
	const { deps, context, admitted, relay } = streaming;
	// What failed may be on our side, and the upstream would go on, at a place that nobody gives back.
	hangUp(streaming);
	deps.telemetry.log.info("a stream ended early", {
		...logFields(context),
		model: admitted.request.model.id,
		ending,
		code: fault.code,
		detail: fault.private,
	});
	return settle(streaming, ending, statusOf(fault), (bill) =>
		close(streaming, relay.fail(fault, bill, context.connection.language)),
	);
}

/** Gives a promise if the reader does not keep up: until it has taken what was written. */
export function write<Chunk>(streaming: Streaming<Chunk>, text: string): Promise<void> | undefined {
	assert(streaming.client !== undefined, "nothing is written before the status is out");
	streaming.lastWriteMs = streaming.deps.clock.monotonicMs();
	const written = streaming.client.write(text);
	if (typeof written === "number") return undefined;
	streaming.stalledSinceMs ??= streaming.lastWriteMs;
	return written.then(() => readerTook(streaming, streaming.deps.clock.monotonicMs()));
}

/** How long the upstream let a reader wait that keeps up: of a slow one it is nothing. */
export function countGap<Chunk>({ deps, lastWriteMs, tookMs }: Streaming<Chunk>): void {
	if (tookMs !== undefined) deps.telemetry.stats.gap(lastWriteMs - tookMs);
}

/** The reader has taken what was written. */
export function readerTook<Chunk>(streaming: Streaming<Chunk>, nowMs: number): void {
	streaming.tookMs = nowMs;
	if (streaming.stalledSinceMs === undefined) return;
	streaming.stalledMs += nowMs - streaming.stalledSinceMs;
	streaming.stalledSinceMs = undefined;
}

/** Writes the last text of a stream that is settled. */
export function close<Chunk>(streaming: Streaming<Chunk>, text: string): void {
	const { client, context } = streaming;
	context.connection.setIdleTimeout(IDLE_TIMEOUT_S);
	if (client === undefined) {
		streaming.unsent = text;
		return;
	}
	try {
		// Of a reader that does not keep up, the runtime keeps what is written last until it has taken it.
		void client.write(text);
		client.close();
	} catch {
		// The client left in this very moment; its request is settled.
	}
}

function keepAlive<Chunk>(streaming: Streaming<Chunk>, nowMs: number): void {
	const { client, lastWriteMs, stalledSinceMs, limits } = streaming;
	if (client === undefined || isOver(streaming) || nowMs - lastWriteMs < limits.keepAliveCommentMs) return;
	// A reader that takes nothing gets no comments either, so that its connection times out.
	if (stalledSinceMs === undefined) void write(streaming, KEEP_ALIVE_COMMENT);
}
