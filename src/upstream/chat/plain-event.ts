/**
 * Events of a chat that differ from one before in nothing but their one string of content. Most of an answer is such events:
 * they are told by their text, and neither parsed nor rebuilt nor written again.
 */
import type { AnswerFields, ChatChunk, ChatChunkChoice } from "./chat-answer.ts";

/** A longer event is read the ordinary way. Below what `hasTooMuch` looks into. */
const CHARS_MAX = 4 * 1024;
/** So often an event is remembered without another that is like it: its server says something new with each. */
const UNUSED_MAX = 4;

/** What JSON writes otherwise than it stands there, and half of a character. */
const NOT_PLAIN = /["\\\p{Cc}\p{Cs}]/u;
const CONTENT = '"content"';

/** A class, since there is one for each open stream that has such events. */
export class PlainEvents {
	#before: string | undefined;
	#after = "";
	#index = 0;
	#about: AnswerFields | undefined;
	#unused = 0;

	/** `chunk` is what `payload` was read as, which said nothing of usage or sources. */
	remember(payload: string, chunk: ChatChunk): void {
		if (this.#unused >= UNUSED_MAX || payload.length > CHARS_MAX || payload.includes("\\")) return;
		const content = onlyContentOf(chunk);
		// With no backslash in the text, each quotation mark begins or ends a string: so this is the one member of that name.
		const nameAt = payload.indexOf(CONTENT);
		if (content === undefined || nameAt === -1 || payload.indexOf(CONTENT, nameAt + 1) !== -1) return;
		const from = valueAt(payload, nameAt + CONTENT.length);
		if (from === undefined || !payload.startsWith(`${content}"`, from)) return;
		this.#before = payload.slice(0, from);
		this.#after = payload.slice(from + content.length);
		this.#index = (chunk.choices[0] as ChatChunkChoice).index;
		this.#about = chunk.about;
		this.#unused += 1;
	}

	/** The chunk in `payload` if it is like the one that is remembered, and `about` is as it was. */
	read(payload: string, about: AnswerFields | undefined): ChatChunk | undefined {
		const before = this.#before;
		if (before === undefined || about !== this.#about || payload.length > CHARS_MAX) return undefined;
		const to = payload.length - this.#after.length;
		if (to <= before.length || !payload.startsWith(before) || !payload.endsWith(this.#after)) return undefined;
		const content = payload.slice(before.length, to);
		if (NOT_PLAIN.test(content)) return undefined;
		this.#unused = 0;
		return new PlainChunk(this.#index, content, about);
	}
}

/** A chunk of content, written already; its choices are made if somebody asks for them. */
class PlainChunk implements ChatChunk {
	readonly choicesText: string;
	readonly outputBytes: number;
	readonly about: AnswerFields | undefined;
	readonly #index: number;
	readonly #content: string;

	constructor(index: number, content: string, about: AnswerFields | undefined) {
		this.choicesText = `[{"index":${index},"delta":{"content":"${content}"},"finish_reason":null}]`;
		this.outputBytes = Buffer.byteLength(content);
		this.about = about;
		this.#index = index;
		this.#content = content;
	}

	get choices(): readonly ChatChunkChoice[] {
		return [{ index: this.#index, delta: { content: this.#content }, finish_reason: null }];
	}
}

/** Undefined if the chunk says anything else, or nothing. */
function onlyContentOf({ choices }: ChatChunk): string | undefined {
	const [choice] = choices;
	if (choice === undefined || choices.length > 1) return undefined;
	if (choice.finish_reason !== null || choice.logprobs !== undefined) return undefined;
	for (const name in choice.delta) if (name !== "content") return undefined;
	const { content } = choice.delta;
	return typeof content === "string" ? content : undefined;
}

/** Where the text of a member's value begins, behind its quotation mark; undefined if it is no string. */
function valueAt(payload: string, nameEnd: number): number | undefined {
	let at = nameEnd;
	for (const sign of [":", '"']) {
		while (payload[at] === " ") at += 1;
		if (payload[at] !== sign) return undefined;
		at += 1;
	}
	return at;
}
