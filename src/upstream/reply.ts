/**
 * The one shape in which every dialect's answers leave `upstream/`. Ids, `created`, `model` and `object` are not part
 * of it: the gateway stamps its own. Everything here was rebuilt from an allow-list.
 */

/** Token counts as the upstream reported them. `promptTokens` includes cached, `completionTokens` includes reasoning. */
export interface TokenUsage {
	readonly promptTokens: number;
	readonly completionTokens: number;
	readonly cachedTokens: number;
	readonly reasoningTokens: number;
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | "function_call";

/** One choice of a chat answer, ready for JSON.stringify in OpenAI's field order. */
export interface ChatChoice {
	readonly index: number;
	readonly message: Readonly<Record<string, unknown>>;
	readonly logprobs: unknown;
	readonly finish_reason: FinishReason;
}

export interface ChatReply {
	readonly choices: readonly ChatChoice[];
	/** Undefined if the upstream gave none or one that cannot be (zero prompt tokens, strings …). */
	readonly usage: TokenUsage | undefined;
	/** Bytes of generated text, tool arguments and reasoning: the basis of an estimate where usage is missing. */
	readonly outputBytes: number;
}

/** One choice of a streamed event. The first delta of each choice always carries `role: "assistant"`. */
export interface ChatChunkChoice {
	readonly index: number;
	readonly delta: Readonly<Record<string, unknown>>;
	readonly logprobs?: unknown;
	readonly finish_reason: FinishReason | null;
}

/** One streamed event; never without choices (usage is taken out and kept on the stream). */
export interface ChatChunk {
	readonly choices: readonly ChatChunkChoice[];
	/** Bytes of generated text, tool arguments and reasoning in it. */
	readonly outputBytes: number;
}

/**
 * An open stream of one answer. Replays on other replicas happen inside `next` until the first chunk was returned.
 */
export interface ChatStream<Chunk = ChatChunk> {
	/**
	 * All chunks that arrived together (at least one), or null at a proper end: finish seen and the upstream's end
	 * marker, or finish and usage seen. Throws UpstreamFailure in every other case (died, silent, error event …).
	 * Not to be called again after null or a throw, nor while a call is pending.
	 */
	next(): Promise<readonly Chunk[] | null>;
	/** The last usage record so far: final after `next` gave null, running before that where the dialect has it. */
	usage(): TokenUsage | undefined;
	/** True once `usage()` is the upstream's final count. */
	usageIsFinal(): boolean;
	/** The replica's alias for logs and metrics (`model#0`), undefined before one was chosen. */
	replica(): string | undefined;
	/** Aborts the upstream call, frees the replica's place; harmless when repeated or after the end. */
	close(): void;
}

export type UpstreamFailureKind =
	/** Nobody answers at the address, the connection broke before an answer, or it answered nonsense. */
	| "unreachable"
	/** connect, first event, silence or total deadline. */
	| "timeout"
	/** It answered that it is overloaded or not ready (429, 503). */
	| "busy"
	/** A 5xx, an error event, an `abort` finish. */
	| "failed"
	/** The answer ended without its end. */
	| "died"
	/** It refuses our request as malformed (4xx): the customer's to mend. */
	| "rejected"
	/** As `rejected`: the prompt does not fit its context. */
	| "context_length"
	/** It refuses our own credentials or does not know the model: the operator's to mend. */
	| "misconfigured"
	/** The client left or the gateway is stopping; nobody is to blame. */
	| "aborted";

/** What went wrong upstream. Never shown as it is: `gateway/error-body.ts` maps the kind. */
export class UpstreamFailure extends Error {
	override readonly name = "UpstreamFailure" as const;
	readonly kind: UpstreamFailureKind;
	/** HTTP status of the upstream's answer, where there was one. */
	readonly status: number | undefined;
	/** The field that a `rejected` is about, if the upstream named one that the client sent. */
	readonly param: string | null;
	/** For the restricted log: may hold upstream text, cut to 500 characters. */
	readonly private: string;

	constructor(
		kind: UpstreamFailureKind,
		detail: { status?: number; param?: string | null; private: string; cause?: unknown },
	) {
		super(`upstream ${kind}`, detail.cause === undefined ? undefined : { cause: detail.cause });
		this.kind = kind;
		this.status = detail.status;
		this.param = detail.param ?? null;
		this.private = detail.private.slice(0, 500);
	}
}
