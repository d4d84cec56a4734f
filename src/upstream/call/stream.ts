import { assert } from "../../base/assert.ts";
import type { Log } from "../../base/log.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { Pool } from "../replicas/pool.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import type { ReportedUsage } from "../usage.ts";
import { Attempt, type CallContext } from "./attempt.ts";
import { EventStream } from "./event-stream.ts";
import { UpstreamFailure } from "./failure.ts";
import type { CallDeps } from "./post.ts";
import { type RequestTries, sendWithReplays } from "./replay.ts";
import type { AnswerStream, OutputChunk, ReadResult, StreamWire } from "./stream-wire.ts";

export interface StreamCall<Chunk> {
	readonly context: CallContext;
	readonly wire: StreamWire<Chunk>;
	/** The request in the replica's dialect: JSON text, or a form. */
	body(replica: Replica): string | FormData;
	/** Omits the output limit from now on. False if there was none, or if the server needs it. */
	dropLimit?(): boolean;
	/** Called when the answer starts or the request has failed, because the request is then not sent again. */
	over?(): void;
}

interface AnswerStreamOptions<Chunk> {
	readonly pool: Pool;
	readonly log: Log;
	readonly limits: ServiceLimits;
	readonly call: StreamCall<Chunk>;
}

/** Sends the request in this step if a place is free. A class, because it allocates less than closures. */
export class ReplayedStream<Chunk extends OutputChunk>
	implements AnswerStream<Chunk>, RequestTries<readonly Chunk[] | null>
{
	readonly #deps: CallDeps;
	/** Undefined once the answer has started, because the request is then not sent again. */
	#options: AnswerStreamOptions<Chunk> | undefined;
	readonly #startedMs: number;
	#first: Promise<readonly Chunk[] | null> | undefined;
	#closed = false;
	#events: Omit<AnswerStream<Chunk>, "replica"> | undefined;
	#alias: string | undefined;

	constructor(deps: CallDeps, options: AnswerStreamOptions<Chunk>) {
		this.#deps = deps;
		this.#options = options;
		this.#startedMs = deps.clock.monotonicMs();
		this.#first = sendWithReplays(options.pool, options.log, options.call.context, this);
		// `over` also runs on rejection, because a caller may close the stream without calling `next`.
		const over = () => options.call.over?.();
		this.#first.then(over, over);
	}

	send(ticket: Ticket, freshConnection: boolean): Promise<readonly Chunk[] | null> {
		if (this.#closed) {
			ticket.release("neutral");
			throw new UpstreamFailure("aborted", { private: "closed before a replica was found" });
		}
		assert(this.#options !== undefined, "an answered request is not sent again");
		const { limits, call } = this.#options;
		const { replica } = ticket;
		this.#alias = replica.alias;
		const body = call.body(replica);
		const attempt = new Attempt(this.#deps, ticket, call.context, limits, this.#startedMs, freshConnection);
		// Watches for a disconnect from the start, because output for a client that has disconnected is charged.
		attempt.guard.watch();
		const events = new EventStream(this.#deps.clock, attempt, call.wire);
		this.#events = events;
		return events.send(attempt, body);
	}

	came(chunks: readonly Chunk[] | null): readonly Chunk[] | null {
		this.#options = undefined;
		return chunks;
	}

	dropLimit(): boolean {
		return this.#options?.call.dropLimit?.() === true;
	}

	/** The EventStream has already converted the error to an UpstreamFailure. */
	failureOf(error: unknown): unknown {
		return error;
	}

	next(): Promise<readonly Chunk[] | null> {
		const first = this.#first;
		this.#first = undefined;
		return first ?? this.#opened().next();
	}

	arrives(): Promise<ReadResult> {
		return this.#opened().arrives();
	}

	take(arrived: ReadResult): readonly Chunk[] | null | undefined {
		return this.#opened().take(arrived);
	}

	brokeOff(error: unknown): ReadResult {
		return this.#opened().brokeOff(error);
	}

	#opened(): Omit<AnswerStream<Chunk>, "replica"> {
		assert(this.#events !== undefined, "a stream is read on after its first chunk");
		return this.#events;
	}

	usage(): ReportedUsage | undefined {
		return this.#events?.usage();
	}

	usageIsFinal(): boolean {
		return this.#events?.usageIsFinal() ?? false;
	}

	replica(): string | undefined {
		return this.#alias;
	}

	tokensLikely(): number | undefined {
		return this.#events?.tokensLikely();
	}

	close(): void {
		this.#closed = true;
		this.#events?.close();
	}
}
