import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { CallTrace, RequestTrace } from "../../traces/traces.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import { UpstreamFailure } from "./failure.ts";
import { type CallGuard, createCallGuard } from "./guard.ts";
import { assertAnswered, type CallDeps, discard, postUpstream, reachable, type UpstreamPost } from "./post.ts";

/** What every call has, whatever it asks for. */
export interface CallContext {
	/** Aborts when the client leaves. */
	readonly signal: AbortSignal;
	/** Requests with the same key go to the same replica where that costs nothing; undefined for none. */
	readonly affinity: string | undefined;
	readonly requestId: string;
	/** Whose request it is: what one account alone meets says little of a replica. */
	readonly accountId: string;
	/** A line of a managed batch: it takes what others leave, waits as long as it must, and gives its place up to others. */
	readonly patient: boolean | undefined;
	readonly trace: RequestTrace | undefined;
}

/** Of a call that says more: that without the rest. */
export function contextOf({ signal, affinity, requestId, accountId, patient, trace }: CallContext): CallContext {
	return { signal, affinity, requestId, accountId, patient, trace };
}

export interface AttemptOptions {
	readonly limits: ServiceLimits;
	readonly call: CallContext;
	/** Monotonic time at which the request began, attempts before this one included. */
	readonly startedMs: number;
	readonly freshConnection: boolean;
	/** Aborts when the place is asked for. */
	readonly asked?: AbortSignal;
}

/** One call to one replica. Owns the replica's place and the connection until the first of its three ends. */
export interface Attempt {
	readonly replica: Replica;
	readonly guard: CallGuard;
	/** Sends before it returns; the answer has status 200. */
	post(post: Pick<UpstreamPost, "path" | "atRoot" | "body" | "accept">): Promise<Response>;
	/** The replica answers: with its first event, and with each further one. */
	answered(): void;
	/** It came to its proper end. */
	succeed(): void;
	/** It did not: hangs up and says what the error stood for. */
	fail(error: unknown): UpstreamFailure;
	/** The caller wants no more of it. */
	close(): void;
}

export function createAttempt(deps: CallDeps, ticket: Ticket, options: AttemptOptions): Attempt {
	const { replica } = ticket;
	const { limits, call, startedMs, freshConnection, asked } = options;
	const { signal, requestId } = call;
	const guard = createCallGuard(deps.clock, {
		limits,
		startedMs,
		signal,
		reachable: () => reachable(deps, replica, limits),
	});
	let response: Response | undefined;
	let sent: CallTrace | undefined;
	asked?.addEventListener("abort", guard.abort, { once: true });

	function hangUp(): void {
		guard.abort();
		guard.end();
		discard(response);
	}

	return {
		replica,
		guard,
		async post(post) {
			// A request in several parts: each is a call of its own.
			sent?.end(undefined, response?.status);
			sent = call.trace?.call(replica.alias, replica.dialect.name);
			response = await postUpstream(deps, replica, guard, {
				...post,
				requestId,
				freshConnection,
				traceHeaders: sent?.headers,
			});
			guard.headersCame();
			await assertAnswered(response, replica);
			return response;
		},
		answered: ticket.answered,
		succeed() {
			guard.end();
			sent?.end(undefined, response?.status);
			ticket.release("ok");
		},
		fail(error) {
			const told = guard.failureOf(error);
			const gaveUp = told.kind === "aborted" && asked?.aborted === true && !signal.aborted;
			const failure = gaveUp ? new UpstreamFailure("yielded", { private: "its place was asked for" }) : told;
			hangUp();
			sent?.end(failure.kind, response?.status);
			ticket.release(guard.outcomeOf(failure));
			return failure;
		},
		close() {
			hangUp();
			sent?.end("closed", response?.status);
			ticket.release("neutral");
		},
	};
}
