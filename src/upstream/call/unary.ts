import { assert } from "../../base/assert.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { Dialect } from "../dialects.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import type { ReportedUsage } from "../usage.ts";
import { asObject, parseJson } from "../wire-value.ts";
import type { AnswerRead } from "./answer-memory.ts";
import { Attempt, type CallContext } from "./attempt.ts";
import { EventStream, type EventsOwner } from "./event-stream.ts";
import { isErrorBody, serverFailure, UpstreamFailure, unreadableAnswer } from "./failure.ts";
import type { CallDeps, UpstreamPost } from "./post.ts";
import {
	ANSWER_BYTES_MAX,
	hasShortBody,
	isEventStream,
	LINE_ANSWER_BYTES_MAX,
	type OpenedBody,
	openBody,
	readLongAnswer,
	SHORT_ANSWER_BYTES,
} from "./read-answer.ts";
import type { RequestTries } from "./replay.ts";
import type { StreamGatherer } from "./stream-wire.ts";

export interface UnaryPost<Answer> extends UpstreamPost {
	/** Largest answer in bytes; default 64 MB. For batch lines at most 8 MB. */
	readonly bytesMax?: number;
	/** Reads JSON that is not an error; long lists in time slices. Throws UpstreamFailure for an unexpected format. */
	readonly read: (body: unknown, headers: Headers, dialect: Dialect) => Answer | Promise<Answer>;
	readonly gather?: () => StreamGatherer<Answer>;
}

export interface PostSender {
	post<Answer>(post: UnaryPost<Answer>): Promise<Answer>;
}

export interface CountedReply {
	/** Undefined if the server reported no token count. */
	readonly usage: ReportedUsage | undefined;
}

/** A request with an unstreamed answer. `run` may send several posts to the replica. */
export interface UnaryCall<Reply extends CountedReply> {
	readonly context: CallContext;
	run(ask: PostSender, replica: Replica): Promise<Reply>;
	/** Omits the output limit from now on. False if there was none, or if the server needs it. */
	dropLimit?(): boolean;
}

export interface ReplicaReply<Reply> {
	readonly reply: Reply;
	readonly replica: string;
	/** Length of the answer's JSON in bytes if it was long, otherwise 0. */
	readonly bytes: number;
}

/**
 * The attempts of one request, whose total deadline starts now. As a PostSender it sends to the current attempt's
 * replica. A class, because it allocates less than closures.
 */
export class UnaryTries<Reply extends CountedReply> implements RequestTries<Reply, ReplicaReply<Reply>>, PostSender {
	readonly #deps: CallDeps;
	readonly #limits: () => ServiceLimits;
	readonly #call: UnaryCall<Reply>;
	readonly #startedMs: number;
	#attempt: Attempt | undefined;
	#longBytes = 0;
	#read: AnswerRead | undefined;

	constructor(deps: CallDeps, limits: () => ServiceLimits, call: UnaryCall<Reply>) {
		this.#deps = deps;
		this.#limits = limits;
		this.#call = call;
		this.#startedMs = deps.clock.monotonicMs();
	}

	send(ticket: Ticket, freshConnection: boolean, asked: AbortSignal | undefined): Promise<Reply> {
		const { context } = this.#call;
		// A batch line may have waited for hours, so its deadline starts with the attempt.
		const startedMs = context.patient === true ? this.#deps.clock.monotonicMs() : this.#startedMs;
		this.#attempt = undefined;
		this.#attempt = new Attempt(this.#deps, ticket, context, this.#limits(), startedMs, freshConnection, asked);
		return this.#call.run(this, ticket.replica);
	}

	came(reply: Reply): ReplicaReply<Reply> {
		const attempt = this.#underWay();
		this.#release();
		// A short call has no listener for the abort, so the client's disconnect is detected here.
		if (this.#call.context.signal.aborted) throw leftBefore();
		attempt.succeed(reply.usage);
		return { reply, replica: attempt.replica.alias, bytes: this.#longBytes };
	}

	dropLimit(): boolean {
		return this.#call.dropLimit?.() === true;
	}

	failureOf(error: unknown): unknown {
		this.#release();
		return this.#attempt === undefined ? error : this.#attempt.fail(error);
	}

	/** Not an async function, which would keep its argument, with the prompt, until the answer arrives. */
	post<Answer>(post: UnaryPost<Answer>): Promise<Answer> {
		const attempt = this.#underWay();
		const turn = attempt.post(post, "application/json");
		return this.#answer(attempt, turn, post.read, post.bytesMax ?? ANSWER_BYTES_MAX, post.gather);
	}

	async #answer<Answer>(
		attempt: Attempt,
		turn: undefined | Promise<void>,
		read: UnaryPost<Answer>["read"],
		answerBytesMax: number,
		gather: UnaryPost<Answer>["gather"],
	): Promise<Answer> {
		const { dialect } = attempt.replica;
		if (turn) await turn;
		const response = await attempt.send();
		const refused = attempt.taken(response);
		if (refused) await refused;
		// Waits, so that all answers of one event-loop turn are read, settled and sent together.
		await this.#deps.tickBarrier();
		const bytesMax =
			this.#call.context.patient === true ? Math.min(answerBytesMax, LINE_ANSWER_BYTES_MAX) : answerBytesMax;
		let parsed: unknown;
		let opened: OpenedBody | undefined;
		if (hasShortBody(response)) {
			const text = await response.text();
			parsed = parseJson(text);
			if (parsed === undefined && gather !== undefined) opened = await openBody(new Response(text));
		} else {
			// If the body's length is declared, it must wait for memory before it is opened.
			if (gather !== undefined && !response.headers.has("content-length")) opened = await openBody(response);
			if (opened === undefined || !isEventStream(opened)) parsed = await this.#readLong(response, bytesMax, opened);
		}
		if (parsed === undefined && gather !== undefined && opened !== undefined && isEventStream(opened))
			return this.#gathered(attempt, opened, gather(), bytesMax);
		if (parsed === undefined) throw unreadableAnswer("an answer that is not JSON");
		const object = asObject(parsed);
		if (object !== undefined && isErrorBody(object)) throw dialect.failureOfError(object);
		return read(parsed, response.headers, dialect);
	}

	async #gathered<Answer>(
		attempt: Attempt,
		opened: OpenedBody,
		gathering: StreamGatherer<Answer>,
		bytesMax: number,
	): Promise<Answer> {
		const { guard } = attempt;
		const stream = new EventStream(this.#deps.clock, partOf(attempt), gathering.wire, ANSWER_BYTES_MAX);
		guard.watch();
		stream.open(opened);
		let bytes = 0;
		let taken = 0;
		for (let chunks = await stream.next(); chunks !== null; chunks = await stream.next()) {
			for (const chunk of chunks) bytes += gathering.add(chunk);
			if (bytes > bytesMax) throw serverFailure("an answer beyond the limit");
			if (bytes - taken <= SHORT_ANSWER_BYTES) continue;
			const room = this.#take(bytes - taken, guard.signal);
			this.#longBytes += bytes - taken;
			taken = bytes;
			if (room) await room;
		}
		guard.waitEnds();
		return gathering.answer(stream.usage());
	}

	async #readLong(response: Response, bytesMax: number, opened: OpenedBody | undefined): Promise<unknown> {
		const { signal } = this.#underWay().guard;
		const { value, bytes } = await readLongAnswer(response, bytesMax, (more) => this.#take(more, signal), opened);
		this.#longBytes += bytes;
		return value;
	}

	#take(bytes: number, signal: AbortSignal): undefined | Promise<void> {
		const { accountId, patient } = this.#call.context;
		this.#read ??= this.#deps.answers.read(accountId);
		return this.#read.take(bytes, signal, patient === true);
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

/** The members that an attempt's events need. Not `succeed` and `fail`, because the attempt goes on. */
const partOf = ({ replica, guard }: Attempt): EventsOwner => ({
	replica,
	guard,
	answered() {},
	succeed() {},
	fail: (error) => guard.failureOf(error),
	close() {},
});

/** Thrown if the client disconnected: the answer costs nothing, even if the disconnect was detected late. */
function leftBefore(): UpstreamFailure {
	return new UpstreamFailure("aborted", { private: "the caller left before the answer came" });
}
