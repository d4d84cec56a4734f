/** One call to one replica whose answer leaves in one piece. */

import { assert } from "../../base/assert.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { Dialect } from "../dialects.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import { asObject, parseJson } from "../wire-value.ts";
import type { AnswerRead } from "./answer-memory.ts";
import { type Attempt, type CallContext, createAttempt } from "./attempt.ts";
import { openEventStream } from "./event-stream.ts";
import { UpstreamFailure, unreadable } from "./failure.ts";
import type { CallDeps, UpstreamPost } from "./post.ts";
import { ANSWER_BYTES_MAX, isShort, LINE_ANSWER_BYTES_MAX, readLong } from "./read-answer.ts";
import type { Tries } from "./replay.ts";
import type { AnswerStream, OutputChunk, StreamWire } from "./stream-wire.ts";
import { isError } from "./upstream-error.ts";

/** One POST and how its answer is read. */
export interface UnaryPost<Answer> extends UpstreamPost {
	/** The largest answer, bytes; default 64 MB. For a line of a batch never more than 8 MB. */
	readonly bytesMax?: number;
	/**
	 * `body` is parsed JSON and no error. What there may be a million of is read in turns. Throws UpstreamFailure at
	 * nonsense.
	 */
	readonly read: (body: unknown, headers: Headers, dialect: Dialect) => Answer | Promise<Answer>;
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
	/** Of its JSON, if that was long; else 0. */
	readonly bytes: number;
}

/** For `withReplays`: a call on one replica after the other. The request begins now. */
export function createUnaryTries<Reply>(
	deps: CallDeps,
	limits: () => ServiceLimits,
	call: UnaryCall<Reply>,
): Tries<Reply, Replied<Reply>> {
	return new UnaryTries(deps, limits, call);
}

/** A class, as the attempt is: there is one for each request. It asks the replica of the attempt under way. */
class UnaryTries<Reply> implements Tries<Reply, Replied<Reply>>, Asker {
	readonly #deps: CallDeps;
	readonly #limits: () => ServiceLimits;
	readonly #call: UnaryCall<Reply>;
	readonly #startedMs: number;
	#attempt: Attempt | undefined;
	#longBytes = 0;
	/** Undefined while all that came is short. */
	#read: AnswerRead | undefined;

	constructor(deps: CallDeps, limits: () => ServiceLimits, call: UnaryCall<Reply>) {
		this.#deps = deps;
		this.#limits = limits;
		this.#call = call;
		this.#startedMs = deps.clock.monotonicMs();
	}

	send(ticket: Ticket, freshConnection: boolean, asked: AbortSignal | undefined): Promise<Reply> {
		const { context } = this.#call;
		// A line of a batch may have waited for hours: its time begins when it is sent.
		const startedMs = context.patient === true ? this.#deps.clock.monotonicMs() : this.#startedMs;
		this.#attempt = undefined;
		this.#attempt = createAttempt(this.#deps, ticket, context, this.#limits(), startedMs, freshConnection, asked);
		return this.#call.run(this, ticket.replica);
	}

	came(reply: Reply): Replied<Reply> {
		const attempt = this.#underWay();
		this.#release();
		// Nobody listened for it if it all took a moment.
		if (this.#call.context.signal.aborted) throw leftBefore();
		attempt.succeed();
		return { reply, replica: attempt.replica.alias, bytes: this.#longBytes };
	}

	failureOf(error: unknown): unknown {
		this.#release();
		return this.#attempt === undefined ? error : this.#attempt.fail(error);
	}

	/** Itself it waits for nothing, as a function that does keeps what it was called with: here a prompt. */
	post<Answer>(post: UnaryPost<Answer>): Promise<Answer> {
		const attempt = this.#underWay();
		const turn = attempt.post(post, "application/json");
		return this.#answer(attempt, turn, post.read, post.bytesMax ?? ANSWER_BYTES_MAX);
	}

	async #answer<Answer>(
		attempt: Attempt,
		turn: undefined | Promise<void>,
		read: UnaryPost<Answer>["read"],
		bytesMax: number,
	): Promise<Answer> {
		const { dialect } = attempt.replica;
		if (turn) await turn;
		const response = await attempt.send();
		const refused = attempt.taken(response);
		if (refused) await refused;
		// Answers of one turn are read, settled and delivered together.
		await this.#deps.tickBarrier();
		const isLine = this.#call.context.patient === true;
		const parsed = isShort(response)
			? parseJson(await response.text())
			: await this.#readLong(response, isLine ? Math.min(bytesMax, LINE_ANSWER_BYTES_MAX) : bytesMax);
		if (parsed === undefined) throw unreadable("an answer that is not JSON");
		const object = asObject(parsed);
		if (object !== undefined && isError(object)) throw dialect.failureOfError(object);
		return read(parsed, response.headers, dialect);
	}

	async #readLong(response: Response, bytesMax: number): Promise<unknown> {
		const { accountId, patient } = this.#call.context;
		const { signal } = this.#underWay().guard;
		const { value, bytes } = await readLong(response, bytesMax, (more) => {
			this.#read ??= this.#deps.answers.read(accountId);
			return this.#read.take(more, signal, patient === true);
		});
		this.#longBytes += bytes;
		return value;
	}

	stream<Chunk extends OutputChunk>(wire: StreamWire<Chunk>, body: string) {
		// Who reads it to its end closes nothing: the client's leaving ends it.
		return openEventStream(this.#deps, this.#underWay(), wire, body, false);
	}

	#release(): void {
		this.#read?.release();
		this.#read = undefined;
	}

	#underWay(): Attempt {
		assert(this.#attempt !== undefined, "a replica is asked while it has the request");
		return this.#attempt;
	}
}

/** What is answered to nobody costs nothing, whenever it was noticed that nobody is there. */
function leftBefore(): UpstreamFailure {
	return new UpstreamFailure("aborted", { private: "the caller left before the answer came" });
}
