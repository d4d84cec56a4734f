/** One call to one replica whose answer leaves in one piece. */

import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import { asObject } from "../wire-value.ts";
import { type AttemptOptions, type CallContext, createAttempt } from "./attempt.ts";
import { openEventStream } from "./event-stream.ts";
import { unreadable } from "./failure.ts";
import type { CallDeps } from "./post.ts";
import { ANSWER_BYTES_MAX, LINE_ANSWER_BYTES_MAX, readAnswer } from "./read-answer.ts";
import type { AnswerStream, OutputChunk, StreamWire } from "./stream-wire.ts";
import { isError } from "./upstream-error.ts";

/** One POST and how its answer is read. */
export interface UnaryPost<Answer> {
	/** Under the replica's base address, or at its server's root. */
	readonly path: string;
	readonly atRoot?: boolean;
	/** JSON text, or a form. */
	readonly body: string | FormData;
	/** The largest answer, bytes; default 64 MB. For a line of a batch never more than 8 MB. */
	readonly bytesMax?: number;
	/**
	 * `body` is parsed JSON and no error. What there may be a million of is read in turns. Throws UpstreamFailure at
	 * nonsense.
	 */
	read(body: unknown, headers: Headers): Answer | Promise<Answer>;
}

/** The ways to ask the replica of one attempt. */
export interface Asker {
	post<Answer>(post: UnaryPost<Answer>): Promise<Answer>;
	/** By way of a stream, to be read to its end. */
	stream<Chunk extends OutputChunk>(wire: StreamWire<Chunk>, body: string): Pick<AnswerStream<Chunk>, "next" | "usage">;
}

/** A request that is answered in one piece; `run` may take several posts to one replica for it. */
export interface UnaryCall<Reply> extends CallContext {
	run(ask: Asker, replica: Replica): Promise<Reply>;
}

/** Rejects with UpstreamFailure; the place is free again either way. */
export async function callUnary<Reply>(
	deps: CallDeps,
	ticket: Ticket,
	options: AttemptOptions & { readonly call: UnaryCall<Reply> },
): Promise<Reply> {
	const { replica } = ticket;
	const attempt = createAttempt(deps, ticket, options);
	const ask: Asker = {
		async post({ path, atRoot = false, body, bytesMax = ANSWER_BYTES_MAX, read }) {
			const response = await attempt.post({ path, atRoot, body, accept: "application/json" });
			const most = options.call.patient === true ? Math.min(bytesMax, LINE_ANSWER_BYTES_MAX) : bytesMax;
			const parsed = await readAnswer(response, most);
			if (parsed === undefined) throw unreadable("an answer that is not JSON");
			const object = asObject(parsed);
			if (object !== undefined && isError(object)) throw replica.dialect.failureOfError(object);
			return read(parsed, response.headers);
		},
		stream: (wire, body) => openEventStream(deps, attempt, wire, body),
	};
	try {
		const reply = await options.call.run(ask, replica);
		attempt.succeed();
		return reply;
	} catch (error) {
		throw attempt.fail(error);
	}
}
