/** Chat answers as `upstream/` returns them. The gateway adds id, `created`, `model` and `object`. */
import type { ReportedUsage } from "../usage.ts";

/** Copied members of an answer other than its choices, by name; see `answer-fields.ts`. */
export type AnswerFields = Readonly<Record<string, unknown>>;

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | "function_call";

/** A choice of a chat answer, ready for JSON.stringify in the order of OpenAI's fields. */
export interface ChatChoice {
	readonly index: number;
	readonly message: Readonly<Record<string, unknown>>;
	readonly logprobs: unknown;
	readonly finish_reason: FinishReason;
}

export interface TextReply<Choice> {
	readonly choices: readonly Choice[];
	/** Undefined if the server reported none or an impossible one (zero prompt tokens, strings). */
	readonly usage: ReportedUsage | undefined;
	/** Bytes of text, tool arguments and reasoning. Without usage, tokens are estimated from these bytes. */
	readonly outputBytes: number;
	/** Other fields of the answer, such as `service_tier`. */
	readonly about?: AnswerFields;
	/** Lists of sources, such as `citations`. */
	readonly sources?: AnswerFields;
}

/** A choice of a streamed event. The first delta of each choice has `role: "assistant"`. */
export interface ChatChunkChoice {
	readonly index: number;
	readonly delta: Readonly<Record<string, unknown>>;
	readonly logprobs?: unknown;
	readonly finish_reason: FinishReason | null;
}

/** A streamed event. It has no choices only if it has sources. Its usage is collected by the stream. */
export interface TextChunk<Choice> {
	readonly choices: readonly Choice[];
	/** JSON of the choices if it already exists. No choice finishes in such an event. */
	readonly choicesText?: string;
	readonly outputBytes: number;
	/** Fields other than the choices, which every event repeats. The same object until a field changes. */
	readonly about?: AnswerFields | undefined;
	/** Lists of sources so far; they are sent with the last event. */
	readonly sources?: AnswerFields;
}

export type ChatReply = TextReply<ChatChoice>;
export type ChatChunk = TextChunk<ChatChunkChoice>;
