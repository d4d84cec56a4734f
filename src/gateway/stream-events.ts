import type { Fault } from "../base/fault.ts";
import type { Language } from "../base/language.ts";
import type { AnswerFields, ChatChunk } from "../upstream/chat/chat-answer.ts";
import type { UsageRecord } from "./bill/bill.ts";
import { errorBody } from "./error-body.ts";

export type WrittenChunk = Pick<ChatChunk, "about" | "sources" | "choicesText"> & {
	readonly choices: readonly { readonly finish_reason: string | null }[];
};

export const KEEP_ALIVE_COMMENT = ": \n\n";
const DONE = "data: [DONE]\n\n";

/**
 * Writes a text answer as server-sent events: `data: <json>` and `data: [DONE]`. A client that requested usage gets it
 * in a last event with `choices: []`, and `usage: null` before. For other clients it is on the finish event, since many
 * read `choices[0]` of every event. A class, since there is one per open stream: closures would be nine more objects.
 */
export class ChatEvents<Chunk extends WrittenChunk = ChatChunk> {
	readonly #prefix: string;
	readonly #includeUsage: boolean;
	readonly #suffix: string;
	/** The last finish, held back until the usage is known. */
	#held: string | undefined;
	/** The last finish, without its other content. */
	#finish: string | undefined;
	/** Members of each event apart from its choices, as last written, and their text. */
	#about: AnswerFields | undefined;
	#aboutText = "";
	#tail: string;
	#sources: AnswerFields | undefined;

	constructor(head: { id: string; createdS: number; model: string; object: string }, includeUsage: boolean) {
		this.#prefix = `data: {"id":${JSON.stringify(head.id)},"object":"${head.object}","created":${head.createdS},"model":${JSON.stringify(head.model)},"choices":`;
		this.#includeUsage = includeUsage;
		this.#suffix = includeUsage ? ',"usage":null}\n\n' : "}\n\n";
		this.#tail = this.#suffix;
	}

	/** Text of these chunks; empty if the only one is a finish that waits for its usage. */
	chunks(chunks: readonly Chunk[]): string {
		let text = "";
		for (const chunk of chunks) {
			this.#note(chunk);
			if (chunk.choicesText !== undefined) {
				text += this.#release() + this.#event(chunk.choicesText);
				continue;
			}
			if (chunk.choices.length === 0) continue;
			const choices = JSON.stringify(chunk.choices);
			if (this.#includeUsage) {
				text += this.#event(choices);
				continue;
			}
			text += this.#release();
			if (!chunk.choices.some(isFinished)) text += this.#event(choices);
			else {
				this.#held = choices;
				this.#finish = JSON.stringify(chunk.choices.filter(isFinished).map(finishOnly));
			}
		}
		return text;
	}

	end(usage: UsageRecord): string {
		const choices = this.#lastChoices();
		this.#held = undefined;
		return this.#usageEvent(usage, choices) + DONE;
	}

	/** An error, the usage, and `[DONE]`: clients that read on after an error still get the charge. */
	fail(fault: Fault, usage: UsageRecord, language?: Language): string {
		const error = `data: ${JSON.stringify(errorBody(fault, language))}\n\n`;
		return `${this.#release()}${error}${this.#usageEvent(usage, "[]")}${DONE}`;
	}

	#event(choices: string): string {
		return this.#prefix + choices + this.#tail;
	}

	#usageEvent(usage: UsageRecord, choices: string): string {
		const besides = this.#aboutText + membersText(this.#sources);
		return `${this.#prefix}${choices}${besides},"usage":${JSON.stringify(usage)}}\n\n`;
	}

	#note(chunk: Chunk): void {
		this.#sources = chunk.sources ?? this.#sources;
		if (chunk.about === undefined || chunk.about === this.#about) return;
		this.#about = chunk.about;
		this.#aboutText = membersText(this.#about);
		this.#tail = this.#aboutText + this.#suffix;
	}

	#release(): string {
		const text = this.#held === undefined ? "" : this.#event(this.#held);
		this.#held = undefined;
		return text;
	}

	/** Usage for clients that did not request it is on the finish event; a finish that was already sent is repeated. */
	#lastChoices(): string {
		if (this.#includeUsage) return "[]";
		return this.#held ?? this.#finish ?? "[]";
	}
}

type WrittenChoice = WrittenChunk["choices"][number];

function isFinished({ finish_reason }: WrittenChoice): boolean {
	return finish_reason !== null;
}

/** The finish again, without content that would be read twice. */
function finishOnly(choice: WrittenChoice): object {
	const { index, finish_reason } = choice as WrittenChoice & { readonly index: number };
	return "text" in choice ? { text: "", index, logprobs: null, finish_reason } : { index, delta: {}, finish_reason };
}

/** Object members, each with its trailing comma. */
function membersText(fields: AnswerFields | undefined): string {
	if (fields === undefined) return "";
	const text = JSON.stringify(fields);
	return text === "{}" ? "" : `,${text.slice(1, -1)}`;
}
