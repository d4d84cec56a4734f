/** The one format in which chats leave `upstream/`. The gateway adds its own id, `created`, `model` and `object`. */
import type { ReportedUsage } from "../usage.ts";

/** Rebuilt members of an answer next to its choices, by name: see `answer-fields.ts`. */
export type AnswerFields = Readonly<Record<string, unknown>>;

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter" | "function_call";

/** One choice of a chat answer, ready for JSON.stringify in OpenAI's field order. */
export interface ChatChoice {
	readonly index: number;
	readonly message: Readonly<Record<string, unknown>>;
	readonly logprobs: unknown;
	readonly finish_reason: FinishReason;
}

export interface TextReply<Choice> {
	readonly choices: readonly Choice[];
	/** Undefined if the upstream sent none, or one that is impossible (zero prompt tokens, strings …). */
	readonly usage: ReportedUsage | undefined;
	/** Bytes of generated text, tool arguments and reasoning: the basis of an estimate without usage. */
	readonly outputBytes: number;
	/** Fields next to the choices, and lists of sources. */
	readonly about?: AnswerFields;
	readonly sources?: AnswerFields;
}

/** One choice of a streamed event. The first delta of each choice always has `role: "assistant"`. */
export interface ChatChunkChoice {
	readonly index: number;
	readonly delta: Readonly<Record<string, unknown>>;
	readonly logprobs?: unknown;
	readonly finish_reason: FinishReason | null;
}

/** One streamed event. It has no choices only if it has sources; usage is removed and kept on the stream. */
export interface TextChunk<Choice> {
	readonly choices: readonly Choice[];
	/** JSON of the choices, if it is already written; then no choice finishes in this event. */
	readonly choicesText?: string;
	readonly outputBytes: number;
	/** Fields that each event repeats next to the choices; the same object until a field changes. */
	readonly about?: AnswerFields | undefined;
	/** The current lists of sources; for the last event. */
	readonly sources?: AnswerFields;
}

export type ChatReply = TextReply<ChatChoice>;
export type ChatChunk = TextChunk<ChatChunkChoice>;
