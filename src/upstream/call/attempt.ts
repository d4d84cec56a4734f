import { assert } from "../../base/assert.ts";
import { waitForTurn } from "../../base/time-slice.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { TraceHeaders } from "../../traces/trace-context.ts";
import type { CallTrace, RequestTrace } from "../../traces/traces.ts";
import type { RoutedPrompt } from "../replicas/prompt-prefix.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import type { ReportedUsage } from "../usage.ts";
import { UpstreamFailure } from "./failure.ts";
import { CallGuard, type GuardOptions } from "./guard.ts";
import {
	type AcceptType,
	assertAnswered,
	type CallDeps,
	cancelBody,
	isReachable,
	isSentWithTick,
	type PostContext,
	postUpstream,
	type UpstreamPost,
} from "./post.ts";

/** Processor time assumed for sending a character of a long body. */
const CHAR_MS = 1 / (1024 * 1024);

export interface CallContext {
	/**
	 * Aborted when the client disconnects. Ignored after a stream's headers: then the stream's reader closes the call.
	 */
	readonly signal: AbortSignal;
	/** Undefined if the choice of a replica does not depend on the prompt. */
	readonly routed: RoutedPrompt | undefined;
	/** See `GenerationRequest`. */
	readonly cacheSalt?: string | undefined;
	readonly requestId: string;
	/** The request id as a UUID: llama-cpp-python refuses any other id. */
	readonly uuid: string;
	/** Account of the request. Failures of a single account do not prove that a replica is at fault. */
	readonly accountId: string;
	/** True for a batch line: it uses only spare places, waits without limit, and yields to other requests. */
	readonly patient: boolean | undefined;
	readonly trace: RequestTrace | undefined;
	/** The checked request. A repetition sends the same object again. */
	readonly request: object;
}

/**
 * One call to a replica. Occupies a place and a connection until the first of `succeed`, `fail` and `close`. A class,
 * because it allocates fewer objects per request than closures.
 */
export class Attempt implements GuardOptions, PostContext {
	readonly replica: Replica;
	readonly guard: CallGuard;
	readonly limits: ServiceLimits;
	readonly startedMs: number;
	clientSignal: AbortSignal | undefined;
	readonly #deps: CallDeps;
	readonly #ticket: Ticket;
	#call: CallContext | undefined;
	readonly freshConnection: boolean;
	readonly #asked: AbortSignal | undefined;
	#post: UpstreamPost | undefined;
	#accept: AcceptType = "application/json";
	#response: Response | undefined;
	#status: number | undefined;
	#sent: CallTrace | undefined;

	/**
	 * `startedMs`: start of the request, earlier attempts included. `asked` aborts when a waiting request needs the
	 * place. Positional arguments, because an options object would be one more allocation per request.
	 */
	constructor(
		deps: CallDeps,
		ticket: Ticket,
		call: CallContext,
		limits: ServiceLimits,
		startedMs: number,
		freshConnection: boolean,
		asked?: AbortSignal,
	) {
		this.#deps = deps;
		this.#ticket = ticket;
		this.#call = call;
		this.freshConnection = freshConnection;
		this.#asked = asked;
		this.replica = ticket.replica;
		this.limits = limits;
		this.startedMs = startedMs;
		this.clientSignal = call.signal;
		this.guard = new CallGuard(deps, this);
		// If `asked` aborted while the call waited for its place, no `abort` event follows.
		if (asked?.aborted) this.guard.abort();
		else asked?.addEventListener("abort", this.guard, { once: true });
	}

	get signal(): AbortSignal {
		return this.guard.signal;
	}

	get requestUuid(): string {
		return this.#asking().uuid;
	}

	get traceHeaders(): TraceHeaders | undefined {
		return this.#sent?.headers;
	}

	isReachable(): Promise<boolean> {
		return isReachable(this.#deps, this.replica, this.limits);
	}

	/**
	 * Prepares the request. Returns a promise if `send` must wait: short requests for others of this event-loop turn,
	 * long ones for their account's turn.
	 */
	post(post: UpstreamPost, accept: AcceptType): undefined | Promise<void> {
		assert(this.#post === undefined, "a request is sent before the next is prepared");
		this.#post = post;
		this.#accept = accept;
		if (isSentWithTick(post)) return this.#deps.tickBarrier();
		return typeof post.body === "string"
			? waitForTurn(this.#asking().accountId, post.body.length * CHAR_MS, true)
			: undefined;
	}

	/** Sends the prepared request in this step. Throws if the call was aborted. Pass the response to `taken` first. */
	send(): Promise<Response> {
		const post = this.#post;
		assert(post !== undefined, "a request is prepared before it is sent");
		this.#post = undefined;
		// Sends nothing if the client has disconnected since `post`, so that the trace contains no call.
		if (this.clientSignal?.aborted) this.guard.abort();
		this.guard.signal.throwIfAborted();
		const { replica } = this;
		// A request that is sent in several parts has one traced call per part.
		this.#sent?.end(undefined, this.#status);
		this.#sent = this.#asking().trace?.call(replica.alias, replica.dialect.name);
		return postUpstream(this.#deps, this, post, this.#accept);
	}

	/** Accepts a response with status 200 or 201. For other statuses throws, or rejects with, the failure. */
	taken(response: Response): undefined | Promise<never> {
		this.#response = response;
		this.#status = response.status;
		this.guard.headersCame();
		return assertAnswered(response, this.replica);
	}

	/** From now on the caller reads the body and closes the call. Drops response and request, to free their memory. */
	handedOver(): void {
		this.guard.callerCloses();
		this.clientSignal = undefined;
		this.#response = undefined;
		this.#call = undefined;
	}

	/** Call it for each event from the replica, which proves that the replica answers requests. */
	answered(): void {
		this.#ticket.answered();
	}

	succeed(usage: ReportedUsage | undefined): void {
		this.replica.noteUsage(usage);
		this.guard.end();
		this.#sent?.end(undefined, this.#status);
		this.#ticket.release("ok", usage);
	}

	/** Ends the call as failed: closes the connection and returns the error as an UpstreamFailure. */
	fail(error: unknown): UpstreamFailure {
		const { guard, clientSignal } = this;
		const told = guard.failureOf(error);
		const gaveUp = told.kind === "aborted" && this.#asked?.aborted === true && clientSignal?.aborted !== true;
		const failure = gaveUp ? new UpstreamFailure("yielded", { private: "a waiting request needed its place" }) : told;
		this.#hangUp();
		this.#sent?.end(failure.kind, this.#status);
		this.#ticket.release(guard.outcomeOf(failure));
		return failure;
	}

	close(): void {
		this.#hangUp();
		this.#sent?.end("closed", this.#status);
		this.#ticket.release("neutral");
	}

	#asking(): CallContext {
		assert(this.#call !== undefined, "the request is dropped once the answer is handed over");
		return this.#call;
	}

	#hangUp(): void {
		this.guard.abort();
		this.guard.end();
		cancelBody(this.#response);
	}
}
