import { assert } from "../../base/assert.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { Dialect } from "../dialects.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import type { ReportedUsage } from "../usage.ts";
import { asObject, parseJson } from "../wire-value.ts";
import type { AnswerRead } from "./answer-memory.ts";
import { Attempt, type CallContext } from "./attempt.ts";
import { isError, UpstreamFailure, unreadable } from "./failure.ts";
import type { CallDeps, UpstreamPost } from "./post.ts";
import { ANSWER_BYTES_MAX, hasShortBody, LINE_ANSWER_BYTES_MAX, readLong } from "./read-answer.ts";
import type { Tries } from "./replay.ts";

export interface UnaryPost<Answer> extends UpstreamPost {
	/** Largest answer in bytes; default 64 MB, for batch lines at most 8 MB. */
	readonly bytesMax?: number;
	/** Reads parsed JSON that is not an error, large lists in time slices. UpstreamFailure if it makes no sense. */
	readonly read: (body: unknown, headers: Headers, dialect: Dialect) => Answer | Promise<Answer>;
}

export interface Asker {
	post<Answer>(post: UnaryPost<Answer>): Promise<Answer>;
}

export interface CountedReply {
	/** Undefined if the upstream reported no count. */
	readonly usage: ReportedUsage | undefined;
}

/** A request with an answer in one piece; `run` may send several posts to the replica. */
export interface UnaryCall<Reply extends CountedReply> {
	readonly context: CallContext;
	run(ask: Asker, replica: Replica): Promise<Reply>;
}

/** A reply, with the alias of its replica. */
export interface Replied<Reply> {
	readonly reply: Reply;
	readonly replica: string;
	/** Length of the JSON in bytes if it was long, else 0. */
	readonly bytes: number;
}

/**
 * Calls for one request; the total deadline starts now. As an Asker it sends to the replica of the current attempt. A
 * class, because there is one per request.
 */
export class UnaryTries<Reply extends CountedReply> implements Tries<Reply, Replied<Reply>>, Asker {
	readonly #deps: CallDeps;
	readonly #limits: () => ServiceLimits;
	readonly #call: UnaryCall<Reply>;
	readonly #startedMs: number;
	#attempt: Attempt | undefined;
	#longBytes = 0;
	/** Undefined while all answers were short. */
	#read: AnswerRead | undefined;

	constructor(deps: CallDeps, limits: () => ServiceLimits, call: UnaryCall<Reply>) {
		this.#deps = deps;
		this.#limits = limits;
		this.#call = call;
		this.#startedMs = deps.clock.monotonicMs();
	}

	send(ticket: Ticket, freshConnection: boolean, asked: AbortSignal | undefined): Promise<Reply> {
		const { context } = this.#call;
		// A batch line may have waited for hours, so its deadline starts when it is sent.
		const startedMs = context.patient === true ? this.#deps.clock.monotonicMs() : this.#startedMs;
		this.#attempt = undefined;
		this.#attempt = new Attempt(this.#deps, ticket, context, this.#limits(), startedMs, freshConnection, asked);
		return this.#call.run(this, ticket.replica);
	}

	came(reply: Reply): Replied<Reply> {
		const attempt = this.#underWay();
		this.#release();
		// A short call has no abort listener, so an abort is noticed only here.
		if (this.#call.context.signal.aborted) throw leftBefore();
		attempt.succeed();
		attempt.replica.noteUsage(reply.usage);
		return { reply, replica: attempt.replica.alias, bytes: this.#longBytes };
	}

	failureOf(error: unknown): unknown {
		this.#release();
		return this.#attempt === undefined ? error : this.#attempt.fail(error);
	}

	/** Not an async function, which would keep its argument, with the prompt, until the answer arrives. */
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
		// Answers of one event-loop turn are read, settled and sent together.
		await this.#deps.tickBarrier();
		const isLine = this.#call.context.patient === true;
		const parsed = hasShortBody(response)
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

	#release(): void {
		this.#read?.release();
		this.#read = undefined;
	}

	#underWay(): Attempt {
		assert(this.#attempt !== undefined, "an attempt is under way");
		return this.#attempt;
	}
}

/** Thrown for a client that disconnected: the answer then costs nothing, whenever that was noticed. */
function leftBefore(): UpstreamFailure {
	return new UpstreamFailure("aborted", { private: "the caller left before the answer came" });
}
