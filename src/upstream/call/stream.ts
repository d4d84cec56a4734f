import type { Log } from "../../base/log.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { Pool } from "../replicas/pool.ts";
import type { Replica } from "../replicas/replica.ts";
import { type CallContext, createAttempt } from "./attempt.ts";
import { openEventStream } from "./event-stream.ts";
import { UpstreamFailure } from "./failure.ts";
import type { CallDeps } from "./post.ts";
import { withReplays } from "./replay.ts";
import type { AnswerStream, OutputChunk, StreamWire } from "./stream-wire.ts";

/** A streamed request of any kind. */
export interface StreamCall<Chunk> {
	readonly context: CallContext;
	readonly wire: StreamWire<Chunk>;
	/** The request in the replica's dialect: JSON text, or a form. */
	body(replica: Replica): string | FormData;
}

/** Sends the request before it returns if a place is free. */
export function createAnswerStream<Chunk extends OutputChunk>(
	deps: CallDeps,
	options: { pool: Pool; log: Log; limits: ServiceLimits; call: StreamCall<Chunk> },
): AnswerStream<Chunk> {
	const { pool, log, limits, call } = options;
	const startedMs = deps.clock.monotonicMs();
	let closed = false;
	let events: Omit<AnswerStream<Chunk>, "replica"> | undefined;
	let alias: string | undefined;
	let begun = false;

	const first = withReplays({ pool, log }, call.context, async (ticket, freshConnection) => {
		if (closed) {
			ticket.release("neutral");
			throw new UpstreamFailure("aborted", { private: "closed before a replica was found" });
		}
		const { replica } = ticket;
		alias = replica.alias;
		const body = call.body(replica);
		const attempt = createAttempt(deps, ticket, { limits, call: call.context, startedMs, freshConnection });
		events = openEventStream(deps, attempt, call.wire, body);
		return events.next();
	});
	// The caller may close the stream without ever asking for a chunk.
	first.catch(() => {});

	return {
		next(): Promise<readonly Chunk[] | null> {
			if (begun && events !== undefined) return events.next();
			begun = true;
			return first;
		},
		usage: () => events?.usage(),
		usageIsFinal: () => events?.usageIsFinal() ?? false,
		replica: () => alias,
		tokensOf: (size) => events?.tokensOf(size),
		close() {
			closed = true;
			events?.close();
		},
	};
}
