/**
 * The one shape in which every dialect's chats leave `upstream/`. Ids, `created`, `model` and `object` are not part of
 * it: the gateway stamps its own. Everything here was rebuilt from an allow-list.
 */
import type { ReportedUsage } from "../usage.ts";

/** Members of an answer beside its choices, rebuilt, by name: see `answer-fields.ts`. */
export type AnswerFields = Readonly<Record<string, unknown>>;

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
	readonly usage: ReportedUsage | undefined;
	/** Bytes of generated text, tool arguments and reasoning: the basis of an estimate where usage is missing. */
	readonly outputBytes: number;
	/** Events that carried output, where it came by way of a stream; 0 where it came whole. */
	readonly outputEvents: number;
	/** What the answer says beside its choices, and its lists of sources. */
	readonly about?: AnswerFields;
	readonly sources?: AnswerFields;
}

/** One choice of a streamed event. The first delta of each choice always carries `role: "assistant"`. */
export interface ChatChunkChoice {
	readonly index: number;
	readonly delta: Readonly<Record<string, unknown>>;
	readonly logprobs?: unknown;
	readonly finish_reason: FinishReason | null;
}

/** One streamed event; without choices only if it has sources (usage is taken out and kept on the stream). */
export interface ChatChunk {
	readonly choices: readonly ChatChunkChoice[];
	/** Their JSON, where it is at hand; then none of them finishes. */
	readonly choicesText?: string;
	/** Bytes of generated text, tool arguments and reasoning in it. */
	readonly outputBytes: number;
	/** What stands on every event beside the choices; the same object as long as it is the same. */
	readonly about?: AnswerFields | undefined;
	/** Lists of sources as they are now; for the last event. */
	readonly sources?: AnswerFields;
}
