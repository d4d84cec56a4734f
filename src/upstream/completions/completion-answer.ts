/** The one shape in which every dialect's text completions leave `upstream/`, rebuilt from an allow-list. */
import type { AnswerFields } from "../chat/chat-answer.ts";
import type { ReportedUsage } from "../usage.ts";
import type { JsonObject } from "../wire-value.ts";

export type CompletionFinish = "stop" | "length" | "content_filter";

/** One choice, whole or a part of it, ready for JSON.stringify in OpenAI's field order. */
export interface CompletionChoice<Finish = CompletionFinish | null> {
	readonly text: string;
	/** Prompt × choices a prompt + choice. */
	readonly index: number;
	readonly logprobs: JsonObject | null;
	readonly finish_reason: Finish;
}

/** One streamed event; never without choices. */
export interface CompletionChunk {
	readonly choices: readonly CompletionChoice[];
	/** Bytes of text in it. */
	readonly outputBytes: number;
	/** What stands on every event beside the choices; the same object as long as it is the same. */
	readonly about?: AnswerFields;
}

export interface CompletionReply {
	readonly choices: readonly CompletionChoice<CompletionFinish>[];
	readonly usage: ReportedUsage | undefined;
	readonly outputBytes: number;
	/** Events that carried output, where it came by way of a stream; 0 where it came whole. */
	readonly outputEvents: number;
	readonly about?: AnswerFields;
}

/** How many answers a request asks for. */
export interface CompletionShape {
	readonly prompts: number;
	/** Choices a prompt. */
	readonly n: number;
}
