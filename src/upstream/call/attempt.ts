import { assert } from "../../base/assert.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { TraceHeaders } from "../../traces/trace-context.ts";
import type { CallTrace, RequestTrace } from "../../traces/traces.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import { UpstreamFailure } from "./failure.ts";
import { type CallGuard, createCallGuard, type GuardOptions } from "./guard.ts";
import {
	type Accepted,
	assertAnswered,
	type CallDeps,
	discard,
	leavesTogether,
	postUpstream,
	reachable,
	type Sender,
	type UpstreamPost,
} from "./post.ts";

/** What every call has, whatever it asks for. */
export interface CallContext {
	/** Aborts when the client leaves. Who reads a stream closes it instead, from its headers on. */
	readonly signal: AbortSignal;
	/** Requests with the same key go to the same replica where that costs nothing; undefined for none. */
	readonly affinity: string | undefined;
	readonly requestId: string;
	/** The same, for servers that refuse an id which is no UUID (llama-cpp-python's does). */
	readonly uuid: string;
	/** Whose request it is: what one account alone meets says little of a replica. */
	readonly accountId: string;
	/** A line of a managed batch: it takes what others leave, waits as long as it must, and gives its place up to others. */
	readonly patient: boolean | undefined;
	readonly trace: RequestTrace | undefined;
}

/** One call to one replica. Owns the replica's place and the connection until the first of its three ends. */
export interface Attempt {
	readonly replica: Replica;
	readonly guard: CallGuard;
	/** What is to be sent next; with the others of this turn of the event loop, if it is to wait for its end. */
	post(post: UpstreamPost, accept: Accepted): undefined | Promise<void>;
	/**
	 * Sends it before it returns; throws if the call was aborted meanwhile. What comes is to be `taken` before anything else
	 * is done with it.
	 */
	send(): Promise<Response>;
	/** Its status is 200, or this throws, or rejects with, what it stands for. */
	taken(response: Response): undefined | Promise<never>;
	/** Its body is read, and the call closed, by who took it: nothing else of the answer is kept, and nothing of what was asked. */
	handedOver(): void;
	/** The replica answers: with its first event, and with each further one. */
	answered(): void;
	/** It came to its proper end. */
	succeed(): void;
	/** It did not: hangs up and says what the error stood for. */
	fail(error: unknown): UpstreamFailure;
	/** The caller wants no more of it. */
	close(): void;
}

/**
 * `startedMs`: monotonic time at which the request began, attempts before this one included. `asked` aborts when the place
 * is asked for.
 */
export function createAttempt(
	deps: CallDeps,
	ticket: Ticket,
	call: CallContext,
	limits: ServiceLimits,
	startedMs: number,
	freshConnection: boolean,
	asked?: AbortSignal,
): Attempt {
	return new CallAttempt(deps, ticket, call, limits, startedMs, freshConnection, asked);
}

/** A class, as the guard is: there is one for each request. */
class CallAttempt implements Attempt, GuardOptions, Sender {
	readonly replica: Replica;
	readonly guard: CallGuard;
	readonly limits: ServiceLimits;
	readonly startedMs: number;
	clientSignal: AbortSignal | undefined;
	readonly #deps: CallDeps;
	readonly #ticket: Ticket;
	/** Undefined once its answer was handed over. */
	#call: CallContext | undefined;
	readonly freshConnection: boolean;
	readonly #asked: AbortSignal | undefined;
	/** Undefined once it was sent. */
	#post: UpstreamPost | undefined;
	#accept: Accepted = "application/json";
	#response: Response | undefined;
	/** Of the last answer. */
	#status: number | undefined;
	#sent: CallTrace | undefined;

	/** Arguments in their order: an object of them is one more. */
	constructor(
		deps: CallDeps,
		ticket: Ticket,
		call: CallContext,
		limits: ServiceLimits,
		startedMs: number,
		freshConnection: boolean,
		asked: AbortSignal | undefined,
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
		this.guard = createCallGuard(deps, this);
		// A place that was waited for may be asked for before its request is sent, and is asked for once.
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

	reachable(): Promise<boolean> {
		return reachable(this.#deps, this.replica, this.limits);
	}

	post(post: UpstreamPost, accept: Accepted): undefined | Promise<void> {
		assert(this.#post === undefined, "one is sent before the next is to be");
		this.#post = post;
		this.#accept = accept;
		return leavesTogether(post) ? this.#deps.tickBarrier() : undefined;
	}

	send(): Promise<Response> {
		const post = this.#post;
		assert(post !== undefined, "what is sent was posted");
		this.#post = undefined;
		// Who is gone since it was posted gets nothing, and a call that is not made stands in no trace.
		if (this.clientSignal?.aborted) this.guard.abort();
		this.guard.signal.throwIfAborted();
		const { replica } = this;
		// A request in several parts: each is a call of its own.
		this.#sent?.end(undefined, this.#status);
		this.#sent = this.#asking().trace?.call(replica.alias, replica.dialect.name);
		return postUpstream(this.#deps, this, post, this.#accept);
	}

	taken(response: Response): undefined | Promise<never> {
		this.#response = response;
		this.#status = response.status;
		this.guard.headersCame();
		return assertAnswered(response, this.replica);
	}

	handedOver(): void {
		this.guard.callerCloses();
		this.clientSignal = undefined;
		this.#response = undefined;
		this.#call = undefined;
	}

	answered(): void {
		this.#ticket.answered();
	}

	succeed(): void {
		this.guard.end();
		this.#sent?.end(undefined, this.#status);
		this.#ticket.release("ok");
	}

	fail(error: unknown): UpstreamFailure {
		const { guard, clientSignal } = this;
		const told = guard.failureOf(error);
		const gaveUp = told.kind === "aborted" && this.#asked?.aborted === true && clientSignal?.aborted !== true;
		const failure = gaveUp ? new UpstreamFailure("yielded", { private: "its place was asked for" }) : told;
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
		assert(this.#call !== undefined, "nothing is asked once the answer was handed over");
		return this.#call;
	}

	#hangUp(): void {
		this.guard.abort();
		this.guard.end();
		discard(this.#response);
	}
}
