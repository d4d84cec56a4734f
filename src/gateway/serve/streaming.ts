import type { Admitted } from "../../admission/admission.ts";
import { assert } from "../../base/assert.ts";
import { Fault } from "../../base/fault.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { RequestEnding } from "../../ledger/event.ts";
import type { AnswerStream } from "../../upstream/call/stream-wire.ts";
import { type Bill, coverExcess, createOutcome, NO_CHARGE, settledBill } from "../bill/bill.ts";
import { IDLE_TIMEOUT_S, UNREAD_TIMEOUT_S } from "../connection.ts";
import { CLIENT_LEFT_STATUS, faultStatus, stoppingFault } from "../error-body.ts";
import { KEEP_ALIVE_COMMENT } from "../generated-text.ts";
import { type RequestContext, requestLogFields, type ServeDeps, type ServedRequest } from "./context.ts";
import { DeliveredOutput } from "./delivery.ts";
import type { Relay } from "./endpoint.ts";
import type { OpenStream } from "./open-streams.ts";

/** States of a streamed answer, passed only in this order. The first ending settles the bill, exactly once. */
type StreamState =
	/** No status was sent yet: a failure can still set the status. */
	| "opening"
	/** The status was sent: a failure becomes an event of the stream. */
	| "streaming"
	/** The bill exceeds the reservation, and credit is being drawn. Only a stop of the process ends this wait early. */
	| "covering"
	/** The bill is settled: later events change nothing. */
	| "settled";

/** A client that has not read for this long in total loses the stream's place if a waiting request needs it. */
export const READER_STALL_MS = 5_000;
/** A pause of the client after which its stream counts as an unread answer, and may be ended if those are too many. */
const UNREAD_MS = 1_000;
/** Memory of a stream whose client does not read: buffers of the runtime, and pieces that wait in this process. */
const UNREAD_BYTES = 4 * 1024 * 1024;

const NEXT: Readonly<Record<StreamState, readonly StreamState[]>> = {
	opening: ["streaming", "covering", "settled"],
	streaming: ["covering", "settled"],
	covering: ["settled"],
	settled: [],
};

const ONCE = { once: true } as const;

/** A streamed answer. Handles the client's disconnect and the stop of the process, too. */
export class RunningStream<Chunk> implements OpenStream, EventListenerObject {
	readonly deps: ServeDeps;
	readonly limits: ServiceLimits;
	/** The fields of the admitted request that are needed until the end, so that the request itself can be freed. */
	readonly context: RequestContext;
	readonly admitted: Admitted;
	readonly relay: Relay<Chunk>;
	readonly delivery = new DeliveredOutput();
	/** Aborts the upstream call before its first event; undefined after the first event. */
	abort: AbortController | undefined = undefined;
	state: StreamState = "opening";
	upstream: AnswerStream<Chunk> | undefined = undefined;
	/** The stream's first chunks; undefined once they are read. */
	first: Promise<readonly Chunk[] | null> | undefined = undefined;
	client: ReadableStreamDirectController | undefined = undefined;
	/** Last text of the stream, if the stream ended before the runtime requested the body. */
	unsent: string | undefined = undefined;
	lastWriteMs: number;
	/** Total time in which the client did not read, and start of the current pause (undefined while it reads). */
	stalledMs = 0;
	stalledSinceMs: number | undefined = undefined;
	/** When the client took the last text; since then the stream has waited for the upstream server. */
	tookMs: number | undefined = undefined;
	/** Reason for which the gateway itself ended the stream; undefined otherwise. */
	halted: Fault | undefined = undefined;
	/** Settles the bill with the credit that this instance already has; set only in the state `covering`. */
	pay: (() => void) | undefined = undefined;
	isListening = false;
	slot = 0;
	/** Bytes of this stream that count as unread answers of its account. */
	#unreadBytes = 0;

	constructor(deps: ServeDeps, { context, admitted }: ServedRequest, relay: Relay<Chunk>) {
		this.deps = deps;
		this.limits = deps.catalog.limits();
		this.context = context;
		this.admitted = admitted;
		this.relay = relay;
		this.lastWriteMs = context.startedMs;
	}

	tick(nowMs: number): void {
		const { stalledSinceMs } = this;
		if (stalledSinceMs !== undefined && nowMs - stalledSinceMs >= UNREAD_MS) this.#countUnread(UNREAD_BYTES);
		this.#giveUpPlace(nowMs);
		this.#keepAlive(nowMs);
	}

	handleEvent(): void {
		this.leave();
	}

	/** Enters a state; asserts that this state may follow the current one. */
	enter(state: StreamState): void {
		assert(NEXT[this.state].includes(state), "a stream is opened once and settled once");
		this.state = state;
	}

	get isOver(): boolean {
		return this.state === "covering" || this.state === "settled";
	}

	/** From this call until the settlement, a disconnect or the stop of the process ends the stream. */
	listen(): void {
		const { signal } = this.context.connection.request;
		this.isListening = true;
		if (signal.aborted) this.leave();
		else signal.addEventListener("abort", this, ONCE);
		if (!this.isOver) this.deps.clients.openStreams.add(this);
	}

	#unlisten(): void {
		if (!this.isListening) return;
		this.deps.clients.openStreams.delete(this);
		this.#countUnread(0);
		this.context.connection.request.signal.removeEventListener("abort", this);
	}

	/**
	 * Computes the bill, ends the hold, and calls `after` with the bill in the same synchronous step. Returns a promise
	 * if credit must be drawn first.
	 */
	settle(ending: RequestEnding, status: number, after: (bill: Bill) => void = () => {}): Promise<void> | undefined {
		const { deps, context, admitted, delivery, upstream } = this;
		const bill = delivery.firstMs === null && ending !== "finished" ? NO_CHARGE : this.#bill(ending);
		const totalMs = deps.clock.monotonicMs() - context.startedMs;
		const facts = { ending, status, replica: upstream?.replica(), firstMs: delivery.firstMs, totalMs };
		const pay = (): void => {
			this.enter("settled");
			this.#unlisten();
			after(settledBill(deps.admission.settle(admitted, createOutcome(bill, facts))));
		};
		const covered = ending === "shutdown" ? undefined : coverExcess(admitted, bill.cost);
		if (covered === undefined) return void pay();
		this.enter("covering");
		const stopped = Promise.withResolvers<void>();
		this.pay = () => {
			pay();
			// Resolved after `pay`, because the runtime writes nothing more of the stream while a caller awaits inside it.
			stopped.resolve();
		};
		const paid = covered.then(() => {
			if (this.state === "covering") pay();
		});
		return Promise.race([paid, stopped.promise]);
	}

	/** Computes the bill. If that throws, charges the upper bound in the journal, as after a crash. */
	#bill(ending: RequestEnding): Bill {
		const { deps, context, admitted, relay, delivery, upstream } = this;
		delivery.isBroken = ending !== "finished" && ending !== "client_left";
		try {
			return relay.bill(delivery.isCut ? delivery.usage : upstream?.usage(), delivery, ending === "finished");
		} catch (error) {
			deps.telemetry.log.error("a bill could not be made", { ...requestLogFields(context), error });
			return { ...NO_CHARGE, cost: admitted.hold.bound, basis: "estimated" };
		}
	}

	/** Handles a disconnect. The runtime reports it by the request's signal, by `cancel`, or by both. */
	leave(): void {
		if (this.isOver) return;
		this.#hangUp();
		this.settle("client_left", CLIENT_LEFT_STATUS)?.catch((error) => {
			this.deps.telemetry.log.error("a stream could not be settled", { ...requestLogFields(this.context), error });
		});
	}

	shutDown(): void {
		if (this.state === "covering") this.pay?.();
		if (this.isOver) return;
		const halted = stoppingFault();
		this.halted = halted;
		this.#hangUp();
		if (this.state === "streaming") void this.fail("shutdown", halted);
		else void this.settle("shutdown", faultStatus(halted));
	}

	#countUnread(bytes: number): void {
		if (bytes === this.#unreadBytes) return;
		this.deps.clients.unreadAnswers.add(this.admitted.request.key.accountId, bytes - this.#unreadBytes);
		this.#unreadBytes = bytes;
	}

	/** Ends a stream whose client does not read while another request needs its place at the server, or its memory. */
	#giveUpPlace(nowMs: number): void {
		const { stalledSinceMs, stalledMs, deps } = this;
		const { model, key } = this.admitted.request;
		if (stalledSinceMs === undefined || this.state !== "streaming") return;
		const isCrowded = this.#unreadBytes > 0 && deps.clients.unreadAnswers.excess(key.accountId) !== undefined;
		const isLate = stalledMs + nowMs - stalledSinceMs >= READER_STALL_MS;
		if (!isCrowded && !(isLate && deps.upstreams.contended(model.id))) return;
		const fault = new Fault("request_timeout", "The answer was read too slowly while other requests waited.");
		void this.fail("client_left", fault);
	}

	#hangUp(): void {
		this.abort?.abort();
		this.upstream?.close();
	}

	/** Ends a stream whose status was sent. Must not throw: Bun would cut the connection without an error event. */
	fail(ending: RequestEnding, fault: Fault): Promise<void> | undefined {
		const { deps, context, admitted, relay } = this;
		// After a failure within the gateway, the upstream call would continue and keep its place at the server.
		this.#hangUp();
		deps.telemetry.log.info("a stream ended early", {
			...requestLogFields(context),
			model: admitted.request.model.id,
			ending,
			code: fault.code,
			detail: fault.private,
		});
		return this.settle(ending, faultStatus(fault), (bill) =>
			this.close(relay.fail(fault, bill, context.connection.language)),
		);
	}

	/** Writes text. If the client reads too slowly, returns a promise that resolves when the client has read the text. */
	write(text: string): Promise<void> | undefined {
		assert(this.client !== undefined, "nothing is written before the status is out");
		const { clock } = this.deps;
		this.lastWriteMs = clock.monotonicMs();
		const written = this.client.write(text);
		if (typeof written === "number") return undefined;
		this.stalledSinceMs ??= this.lastWriteMs;
		return written.then(() => this.readerTook(clock.monotonicMs()));
	}

	/** Records how long the client waited for the upstream server; 0 if the client was slower. */
	countGap(): void {
		if (this.tookMs !== undefined) this.deps.telemetry.stats.gap(this.lastWriteMs - this.tookMs);
	}

	readerTook(nowMs: number): void {
		this.tookMs = nowMs;
		if (this.stalledSinceMs === undefined) return;
		this.#countUnread(0);
		this.stalledMs += nowMs - this.stalledSinceMs;
		this.stalledSinceMs = undefined;
	}

	close(text: string): void {
		this.context.connection.setIdleTimeout(this.stalledSinceMs === undefined ? IDLE_TIMEOUT_S : UNREAD_TIMEOUT_S);
		if (this.client === undefined) {
			this.unsent = text;
			return;
		}
		try {
			// The runtime keeps the last text until a slow client has read it.
			void this.client.write(text);
			this.client.close();
		} catch {
			// The client disconnected at this moment; its request is already settled.
		}
	}

	#keepAlive(nowMs: number): void {
		const { client, lastWriteMs, stalledSinceMs, limits } = this;
		if (client === undefined || this.isOver || nowMs - lastWriteMs < limits.keepAliveCommentMs) return;
		// A client that does not read gets no comments, so that its idle timeout fires.
		if (stalledSinceMs === undefined) void this.write(KEEP_ALIVE_COMMENT);
	}
}
