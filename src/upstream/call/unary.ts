/** One call to one replica whose answer leaves in one piece. */

import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import { asObject } from "../wire-value.ts";
import { type Attempt, type AttemptOptions, type CallContext, createAttempt } from "./attempt.ts";
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
export interface UnaryCall<Reply> {
	readonly context: CallContext;
	run(ask: Asker, replica: Replica): Promise<Reply>;
}

/** A reply, and the alias of the replica that it is from. */
export interface Replied<Reply> {
	readonly reply: Reply;
	readonly replica: string;
}

/** Rejects with UpstreamFailure; the place is free again either way. */
export async function callUnary<Reply>(
	deps: CallDeps,
	ticket: Ticket,
	{ run }: Pick<UnaryCall<Reply>, "run">,
	options: AttemptOptions,
): Promise<Replied<Reply>> {
	const { replica } = ticket;
	const attempt = createAttempt(deps, ticket, options);
	try {
		const reply = await run(new AttemptAsker(deps, attempt, options.call.patient === true), replica);
		attempt.succeed();
		return { reply, replica: replica.alias };
	} catch (error) {
		throw attempt.fail(error);
	}
}

/** A class, as the attempt is: there is one for each request. */
class AttemptAsker implements Asker {
	readonly #deps: CallDeps;
	readonly #attempt: Attempt;
	readonly #bytesMax: number;

	constructor(deps: CallDeps, attempt: Attempt, isLine: boolean) {
		this.#deps = deps;
		this.#attempt = attempt;
		this.#bytesMax = isLine ? LINE_ANSWER_BYTES_MAX : Number.POSITIVE_INFINITY;
	}

	async post<Answer>(post: UnaryPost<Answer>): Promise<Answer> {
		const { path, atRoot, body, bytesMax = ANSWER_BYTES_MAX } = post;
		const response = await this.#attempt.post({ path, atRoot, body, accept: "application/json" });
		const refused = this.#attempt.taken(response);
		if (refused) await refused;
		const parsed = await readAnswer(response, Math.min(bytesMax, this.#bytesMax));
		if (parsed === undefined) throw unreadable("an answer that is not JSON");
		const object = asObject(parsed);
		if (object !== undefined && isError(object)) throw this.#attempt.replica.dialect.failureOfError(object);
		return post.read(parsed, response.headers);
	}

	stream<Chunk extends OutputChunk>(wire: StreamWire<Chunk>, body: string) {
		return openEventStream(this.#deps, this.#attempt, wire, body);
	}
}
