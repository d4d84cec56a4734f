import type { Log } from "../../base/log.ts";
import type { Model } from "../../catalog/model.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { Pool } from "../replicas/pool.ts";
import type { Replica } from "../replicas/replica.ts";
import { type ChatChunk, type ChatStream, UpstreamFailure } from "../reply.ts";
import { type Attempt, CHAT_WIRE, openAttempt } from "./attempt.ts";
import type { CallDeps } from "./post.ts";
import { withReplays } from "./replay.ts";
import type { StreamWire } from "./stream-wire.ts";

/** One customer's chat request on its way to a replica. */
export interface ChatCall {
	/** The client's body, filtered to what the deployment honours, `messages` included. */
	readonly fields: Readonly<Record<string, unknown>>;
	/** The JSON text of `fields.messages`, if it is at hand. */
	readonly rawMessages?: string | undefined;
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
		rawMessages: call.rawMessages,
	});
}

/** A streamed request of any kind. */
export interface StreamCall<Chunk> extends Pick<ChatCall, "signal" | "affinity" | "requestId"> {
	readonly wire: StreamWire<Chunk>;
	/** The request in the replica's dialect. */
	body(replica: Replica): string | FormData;
}

/** A chat as a streamed call. */
export function chatStreamCall(model: Model, call: ChatCall): StreamCall<ChatChunk> {
	const { signal, affinity, requestId } = call;
	return { signal, affinity, requestId, wire: CHAT_WIRE, body: (replica) => requestTextOf(replica, model, call, true) };
}

/** Sends the request before it returns if a place is free. */
export function createAnswerStream<Chunk>(
	deps: CallDeps,
	options: { pool: Pool; log: Log; limits: ServiceLimits; call: StreamCall<Chunk> },
): ChatStream<Chunk> {
	const { pool, log, limits, call } = options;
	const { requestId, wire } = call;
	const startedMs = deps.clock.monotonicMs();
	let closed = false;
	let attempt: Attempt<Chunk> | undefined;
	let alias: string | undefined;
	let begun = false;

	const first = withReplays({ pool, log }, call, async (ticket, freshConnection) => {
		if (closed) {
			ticket.release("neutral");
			throw new UpstreamFailure("aborted", { private: "closed before a replica was found" });
		}
		const { replica } = ticket;
		alias = replica.alias;
		const body = call.body(replica);
		const { signal } = call;
		attempt = openAttempt(deps, ticket, { limits, body, requestId, signal, startedMs, freshConnection }, wire);
		return attempt.next();
	});
	// The caller may close the stream without ever asking for a chunk.
	first.catch(() => {});

	return {
		next(): Promise<readonly Chunk[] | null> {
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
