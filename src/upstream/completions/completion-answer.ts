/** The one format in which all dialects' text completions leave `upstream/`, rebuilt from an allow-list. */
import type { AnswerFields } from "../chat/chat-answer.ts";
import type { ReportedUsage } from "../usage.ts";
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

/** One streamed event; always with choices. */
export interface CompletionChunk {
	readonly choices: readonly CompletionChoice[];
	/** Bytes of text in it. */
	readonly outputBytes: number;
	/** Fields that each event repeats next to the choices; the same object until a field changes. */
	readonly about?: AnswerFields;
}

export interface CompletionReply {
	readonly choices: readonly CompletionChoice<CompletionFinish>[];
	readonly usage: ReportedUsage | undefined;
	readonly outputBytes: number;
	/** Events that carried output, if the answer came as a stream; otherwise 0. */
	readonly outputEvents: number;
	readonly about?: AnswerFields;
}

/** The number of choices in a request: `prompts` × `n`. */
export interface CompletionShape {
	readonly prompts: number;
	/** Choices per prompt. */
	readonly n: number;
}
