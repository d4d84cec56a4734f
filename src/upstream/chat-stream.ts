import type { Log } from "../base/log.ts";
import type { Model } from "../catalog/model.ts";
import type { ServiceLimits } from "../catalog/service-limits.ts";
import { type ChatAttempt, openChatAttempt } from "./chat-attempt.ts";
import type { Pool } from "./pool.ts";
import { withReplays } from "./replay.ts";
import type { Replica } from "./replica.ts";
import { type ChatChunk, type ChatStream, UpstreamFailure } from "./reply.ts";
import type { CallDeps } from "./upstream-call.ts";

/** One customer's chat request on its way to a replica. */
export interface ChatCall {
	/** The client's body, filtered to what the deployment honours, `messages` included. */
	readonly fields: Readonly<Record<string, unknown>>;
	/** Output tokens a choice that the reservation covers. */
	readonly outputLimit: number;
	readonly n: number;
	/** Aborts when the client leaves. */
	readonly signal: AbortSignal;
	/** Requests with the same key go to the same replica where that costs nothing; undefined for none. */
	readonly affinity: string | undefined;
	readonly requestId: string;
}

export function requestTextOf(replica: Replica, model: Model, call: ChatCall, stream: boolean): string {
	return replica.dialect.chatRequest(call.fields, {
		upstreamModel: replica.spec().model,
		stream,
		outputLimit: call.outputLimit,
		n: call.n,
		parameters: model.parameters,
	});
}

/** Sends the request before it returns if a place is free. */
export function createChatStream(
	deps: CallDeps,
	options: { pool: Pool; log: Log; limits: ServiceLimits; model: Model; call: ChatCall },
): ChatStream {
	const { pool, log, limits, model, call } = options;
	const { requestId } = call;
	const startedMs = deps.clock.monotonicMs();
	let closed = false;
	let attempt: ChatAttempt | undefined;
	let alias: string | undefined;
	let begun = false;

	const first = withReplays({ pool, log }, call, async (ticket, freshConnection) => {
		if (closed) {
			ticket.release("neutral");
			throw new UpstreamFailure("aborted", { private: "closed before a replica was found" });
		}
		const { replica } = ticket;
		alias = replica.alias;
		const body = requestTextOf(replica, model, call, true);
		attempt = openChatAttempt(deps, ticket, {
			limits,
			body,
			requestId,
			signal: call.signal,
			startedMs,
			freshConnection,
		});
		return attempt.next();
	});
	// The caller may close the stream without ever asking for a chunk.
	first.catch(() => {});

	return {
		next(): Promise<readonly ChatChunk[] | null> {
			if (begun && attempt !== undefined) return attempt.next();
			begun = true;
			return first;
		},
		usage: () => attempt?.usage(),
		usageIsFinal: () => attempt?.usageIsFinal() ?? false,
		replica: () => alias,
		close() {
			closed = true;
			attempt?.close();
		},
	};
}
