import type { Admitted } from "../../admission/admission.ts";
import { assert } from "../../base/assert.ts";
import { Fault } from "../../base/fault.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { Ending } from "../../ledger/event.ts";
import type { AnswerStream } from "../../upstream/call/stream-wire.ts";
import { type Bill, coverExcess, FREE_BILL, outcomeOf, settledBill } from "../bill/bill.ts";
import { IDLE_TIMEOUT_S } from "../connection.ts";
import { CLIENT_LEFT_STATUS, restarting, statusOf } from "../error-body.ts";
import { KEEP_ALIVE_COMMENT } from "../stream-events.ts";
import { type Exchange, logFields, type RequestContext, type ServeDeps } from "./context.ts";
import { Delivery } from "./delivery.ts";
import type { Relay } from "./endpoint.ts";
import type { OpenStream } from "./open-streams.ts";

/** State of a streamed answer. Transitions only lead forward, so the first ending settles it, once. */
type StreamState =
	/** The status is held back, so that a failure can still set it. */
	| "opening"
	/** The status was sent: a failure is an event of the stream. */
	| "streaming"
	/** The bill exceeds the reservation and credit is being drawn. Only a stop of the process does not wait. */
	| "covering"
	/** The bill is settled; later events change nothing. */
	| "settled";

/** Total time that a reader may stall a stream before a waiting request gets its place. */
export const READER_STALL_MS = 5_000;

const NEXT: Readonly<Record<StreamState, readonly StreamState[]>> = {
	opening: ["streaming", "covering", "settled"],
	streaming: ["covering", "settled"],
	covering: ["settled"],
	settled: [],
};

/** One streamed answer, and the listener of its events from outside. */
export class Streaming<Chunk> implements OpenStream, EventListenerObject {
	readonly deps: ServeDeps;
	readonly limits: ServiceLimits;
	/** The parts of its exchange that are needed until the end, without the request. */
	readonly context: RequestContext;
	readonly admitted: Admitted;
	readonly relay: Relay<Chunk>;
	readonly delivery = new Delivery();
	/** Aborts the upstream call before its first event; undefined afterwards. */
	abort: AbortController | undefined = undefined;
	state: StreamState = "opening";
	upstream: AnswerStream<Chunk> | undefined = undefined;
	/** The first chunks, until they are read. */
	first: Promise<readonly Chunk[] | null> | undefined = undefined;
	client: ReadableStreamDirectController | undefined = undefined;
	/** The last text, if the stream ended before the runtime requested the body. */
	unsent: string | undefined = undefined;
	lastWriteMs: number;
	/** Total time that the reader stalled, and the start of the current stall; undefined while the reader keeps up. */
	stalledMs = 0;
	stalledSinceMs: number | undefined = undefined;
	/** When the reader took the last text: from then on the stream waits for the upstream. */
	tookMs: number | undefined = undefined;
	/** The reason if the service ended the stream. */
	halted: Fault | undefined = undefined;
	/** Settles the bill with this instance's credit; undefined outside `covering`. */
	pay: (() => void) | undefined = undefined;
	isListening = false;
	slot = 0;

	constructor(deps: ServeDeps, { context, admitted }: Exchange, relay: Relay<Chunk>) {
		this.deps = deps;
		this.limits = deps.catalog.limits();
		this.context = context;
		this.admitted = admitted;
		this.relay = relay;
		this.lastWriteMs = context.startedMs;
	}

	tick(nowMs: number): void {
		giveUpPlace(this, nowMs);
		keepAlive(this, nowMs);
	}

	shutDown(): void {
		shutDown(this);
	}

	handleEvent(): void {
		leave(this);
	}
}

/** Enters the next state. Asserts that the transition exists. */
export function enter<Chunk>(streaming: Streaming<Chunk>, state: StreamState): void {
	assert(NEXT[streaming.state].includes(state), "a stream is opened once and settled once");
	streaming.state = state;
}

export function isOver<Chunk>({ state }: Streaming<Chunk>): boolean {
	return state === "covering" || state === "settled";
}

/** From now until the settlement, the client's leaving and the stop of the process end the stream. */
export function listen<Chunk>(streaming: Streaming<Chunk>): void {
	const { signal } = streaming.context.connection.request;
	streaming.isListening = true;
	if (signal.aborted) leave(streaming);
	else signal.addEventListener("abort", streaming, ONCE);
	if (!isOver(streaming)) streaming.deps.clients.openStreams.add(streaming);
}

const ONCE = { once: true } as const;

function unlisten<Chunk>(streaming: Streaming<Chunk>): void {
	if (!streaming.isListening) return;
	streaming.deps.clients.openStreams.delete(streaming);
	streaming.context.connection.request.signal.removeEventListener("abort", streaming);
}

/**
 * Makes the bill, ends the hold and runs `after` with the bill in the same turn. Returns a promise if it first draws
 * credit.
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
		unlisten(streaming);
		after(settledBill(deps.admission.settle(admitted, outcomeOf(bill, facts))));
	};
	const covered = ending === "shutdown" ? undefined : coverExcess(admitted, bill.cost);
	if (covered === undefined) return void pay();
	enter(streaming, "covering");
	const stopped = Promise.withResolvers<void>();
	streaming.pay = () => {
		pay();
		// While a caller awaits inside the stream, the runtime writes nothing more of it.
		stopped.resolve();
	};
	const paid = covered.then(() => {
		if (streaming.state === "covering") pay();
	});
	return Promise.race([paid, stopped.promise]);
}

/** A bill that cannot be made is charged the journal's bound, as after a crash. */
function billOf<Chunk>(streaming: Streaming<Chunk>, ending: Ending): Bill {
	const { deps, context, admitted, relay, delivery, upstream } = streaming;
	try {
		return relay.bill(delivery.isCut ? delivery.usage : upstream?.usage(), delivery, ending === "finished");
	} catch (error) {
		deps.telemetry.log.error("a bill could not be made", { ...logFields(context), error });
		return { ...FREE_BILL, cost: admitted.hold.bound, basis: "estimated" };
	}
}

/** The signal and `cancel` may come together or alone. */
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

/** A waiting request takes precedence over a reader that stalls a place. */
function giveUpPlace<Chunk>(streaming: Streaming<Chunk>, nowMs: number): void {
	const { deps, admitted, stalledSinceMs, stalledMs } = streaming;
	if (stalledSinceMs === undefined || streaming.state !== "streaming") return;
	if (stalledMs + nowMs - stalledSinceMs < READER_STALL_MS) return;
	if (!deps.upstreams.contended(admitted.request.model.id)) return;
	void fail(
		streaming,
		"client_left",
		new Fault("request_timeout", "The answer was read too slowly while other requests waited."),
	);
}

function hangUp<Chunk>({ abort, upstream }: Streaming<Chunk>): void {
	abort?.abort();
	upstream?.close();
}

/** Ends a stream whose status was sent. It must not throw: the runtime would cut the connection silently. */
export function fail<Chunk>(streaming: Streaming<Chunk>, ending: Ending, fault: Fault): Promise<void> | undefined {
	const { deps, context, admitted, relay } = streaming;
	// The failure may be ours; without this the upstream would continue and keep its place.
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

/** Returns a promise if the reader does not keep up: it resolves when the reader has taken the text. */
export function write<Chunk>(streaming: Streaming<Chunk>, text: string): Promise<void> | undefined {
	assert(streaming.client !== undefined, "nothing is written before the status is out");
	streaming.lastWriteMs = streaming.deps.clock.monotonicMs();
	const written = streaming.client.write(text);
	if (typeof written === "number") return undefined;
	streaming.stalledSinceMs ??= streaming.lastWriteMs;
	return written.then(() => readerTook(streaming, streaming.deps.clock.monotonicMs()));
}

/** Counts how long the upstream kept the reader waiting; zero for a slow reader. */
export function countGap<Chunk>({ deps, lastWriteMs, tookMs }: Streaming<Chunk>): void {
	if (tookMs !== undefined) deps.telemetry.stats.gap(lastWriteMs - tookMs);
}

export function readerTook<Chunk>(streaming: Streaming<Chunk>, nowMs: number): void {
	streaming.tookMs = nowMs;
	if (streaming.stalledSinceMs === undefined) return;
	streaming.stalledMs += nowMs - streaming.stalledSinceMs;
	streaming.stalledSinceMs = undefined;
}

/** Writes the last text of a settled stream. */
export function close<Chunk>(streaming: Streaming<Chunk>, text: string): void {
	const { client, context } = streaming;
	context.connection.setIdleTimeout(IDLE_TIMEOUT_S);
	if (client === undefined) {
		streaming.unsent = text;
		return;
	}
	try {
		// For a slow reader, the runtime keeps the last text until the reader has taken it.
		void client.write(text);
		client.close();
	} catch {
		// The client left at this moment; its request is settled.
	}
}

function keepAlive<Chunk>(streaming: Streaming<Chunk>, nowMs: number): void {
	const { client, lastWriteMs, stalledSinceMs, limits } = streaming;
	if (client === undefined || isOver(streaming) || nowMs - lastWriteMs < limits.keepAliveCommentMs) return;
	// A stalled reader gets no comments either, so that its connection times out.
	if (stalledSinceMs === undefined) void write(streaming, KEEP_ALIVE_COMMENT);
}
