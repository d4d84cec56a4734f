import type { Fault } from "../base/fault.ts";
import type { Language } from "../base/language.ts";
import type { AnswerFields, ChatChunk } from "../upstream/chat/chat-answer.ts";
import type { UsageRecord } from "./bill/bill.ts";
import { errorBody } from "./error-body.ts";

export type WrittenChunk = Pick<ChatChunk, "about" | "sources" | "choicesText"> & {
	readonly choices: readonly unknown[];
};

export const KEEP_ALIVE_COMMENT = ": \n\n";
const DONE = "data: [DONE]\n\n";
/** An empty choice for each value of the events' field `object`. */
const EMPTY_CHOICES: Readonly<Record<string, string>> = {
	"chat.completion.chunk": '[{"index":0,"delta":{},"finish_reason":null}]',
	text_completion: '[{"text":"","index":0,"logprobs":null,"finish_reason":null}]',
};

/**
 * Writes a text answer as server-sent events: `data: <json>` and `data: [DONE]`. The last event has the usage. A client
 * that requested usage gets `choices: []` in it, and `usage: null` in earlier events. For other clients the last event
 * has an empty choice, since many read `choices[0]` of every event. A class, because nine closures per open stream
 * would cost more.
 */
export class ChatEvents<Chunk extends WrittenChunk = ChatChunk> {
	readonly #prefix: string;
	readonly #usageChoices: string;
	readonly #suffix: string;
	/** The last event's members other than its choices, with their JSON; most events repeat them, so it is reused. */
	#about: AnswerFields | undefined;
	#aboutText = "";
	#tail: string;
	#sources: AnswerFields | undefined;

	constructor(head: { id: string; createdS: number; model: string; object: string }, includeUsage: boolean) {
		this.#prefix = `data: {"id":${JSON.stringify(head.id)},"object":"${head.object}","created":${head.createdS},"model":${JSON.stringify(head.model)},"choices":`;
		this.#usageChoices = includeUsage ? "[]" : (EMPTY_CHOICES[head.object] ?? "[]");
		this.#suffix = includeUsage ? ',"usage":null}\n\n' : "}\n\n";
		this.#tail = this.#suffix;
	}

	/** The events for these chunks as text; empty if they have no choices. */
	chunks(chunks: readonly Chunk[]): string {
		let text = "";
		for (const chunk of chunks) {
			this.#note(chunk);
			if (chunk.choicesText !== undefined) text += this.#prefix + chunk.choicesText + this.#tail;
			else if (chunk.choices.length > 0) text += this.#prefix + JSON.stringify(chunk.choices) + this.#tail;
		}
		return text;
	}

	end(usage: UsageRecord): string {
		const besides = this.#aboutText + membersText(this.#sources);
		return `${this.#prefix}${this.#usageChoices}${besides},"usage":${JSON.stringify(usage)}}\n\n${DONE}`;
	}

	/** The error, the usage, and `[DONE]`: clients that read on after an error still get the charge. */
	fail(fault: Fault, usage: UsageRecord, language?: Language): string {
		return `data: ${JSON.stringify(errorBody(fault, language))}\n\n${this.end(usage)}`;
	}

	#note(chunk: Chunk): void {
		this.#sources = chunk.sources ?? this.#sources;
		if (chunk.about === undefined || chunk.about === this.#about) return;
		this.#about = chunk.about;
		this.#aboutText = membersText(this.#about);
		this.#tail = this.#aboutText + this.#suffix;
	}
}

/** Members of an object as JSON, each followed by a comma. */
function membersText(fields: AnswerFields | undefined): string {
	if (fields === undefined) return "";
	const text = JSON.stringify(fields);
	return text === "{}" ? "" : `,${text.slice(1, -1)}`;
}
