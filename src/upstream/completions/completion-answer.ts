/** The one format in which all dialects' text completions leave `upstream/`, rebuilt from an allow-list. */
import type { TextChunk, TextReply } from "../chat/chat-answer.ts";
import type { JsonObject } from "../wire-value.ts";

export type CompletionFinish = "stop" | "length" | "content_filter";

/** One choice or a part of it, ready for JSON.stringify in OpenAI's field order. */
export interface CompletionChoice<Finish = CompletionFinish | null> {
	readonly text: string;
	/** `n` × index of the prompt + index of the choice. */
	readonly index: number;
	readonly logprobs: JsonObject | null;
	readonly finish_reason: Finish;
}

export type CompletionChunk = TextChunk<CompletionChoice>;
export type CompletionReply = TextReply<CompletionChoice<CompletionFinish>>;

/** The number of choices in a request: `prompts` × `n`. */
export interface CompletionShape {
	readonly prompts: number;
	/** Choices per prompt. */
	readonly n: number;
}
