import type { Dialect } from "../dialects.ts";
import { TextReader } from "../text-reader.ts";
import type { JsonObject } from "../wire-value.ts";
import type { AnswerFields, ChatChunk, ChatChunkChoice } from "./chat-answer.ts";
import { CHOICES_MAX, type ChoiceProgress, impliedEnd, rebuildChunkChoice } from "./chat-choice.ts";

export class ChatReader extends TextReader<ChatChunkChoice> {
	/** Fast path for similar events; undefined until an event had output and no usage. */
	#plain: PlainEvents | undefined;

	constructor(dialect: Dialect, choicesAsked = 1) {
		super(dialect, choicesAsked, CHOICES_MAX);
	}

	override accept(payload: string): ChatChunk | undefined {
		if (this.#plain === undefined || this.sourcesWait || this.ended()) return super.accept(payload);
		const plain = this.#plain.read(payload, this.soFar.about);
		if (plain === undefined) return super.accept(payload);
		super.noteOutput(payload, plain, false);
		return plain;
	}

	protected override noteOutput(payload: string, chunk: ChatChunk, saysSources: boolean): void {
		super.noteOutput(payload, chunk, saysSources);
		if (saysSources) return;
		this.#plain ??= new PlainEvents();
		this.#plain.remember(payload, chunk);
	}

	protected override noteSources(): void {
		this.sourcesWait = true;
	}

	protected override readChoice(raw: JsonObject, index: number, progress: ChoiceProgress): ChatChunkChoice | undefined {
		return rebuildChunkChoice(raw, index, progress);
	}

	protected override endOf(index: number, progress: ChoiceProgress): ChatChunkChoice {
		return impliedEnd(index, progress);
	}
}

/** Longer events are always parsed. Shorter events need no check by `exceedsWireLimits`. */
const CHARS_MAX = 4 * 1024;
/** The fast path is given up after this many remembered events that matched no later event. */
const UNUSED_MAX = 4;

/** Characters that JSON escapes, and lone surrogates. */
const NOT_PLAIN = /["\\\p{Cc}\p{Cs}]/u;
const CONTENT = '"content"';

/**
 * Fast path: does not parse events that differ from a remembered event only in content. A class, because it allocates
 * less than closures.
 */
export class PlainEvents {
	#before: string | undefined;
	#after = "";
	#index = 0;
	#about: AnswerFields | undefined;
	#unused = 0;

	/**
	 * Keeps the text around an event's content, so that a next event with another content needs no parsing. `chunk` is the
	 * parsed `payload`, which must have neither usage nor sources.
	 */
	remember(payload: string, chunk: ChatChunk): void {
		if (this.#unused >= UNUSED_MAX || payload.length > CHARS_MAX || payload.includes("\\")) return;
		const content = onlyContentOf(chunk);
		// Without backslashes every quotation mark starts or ends a string, so the only `"content"` is the member's name.
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

	/** Returns the chunk if `payload` differs from the remembered event only in content, and `about` is unchanged. */
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

/** A chunk whose JSON already exists, so `choices` is built only when it is read. */
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

/** The content of a chunk that contains only content; undefined for other chunks. */
function onlyContentOf({ choices }: ChatChunk): string | undefined {
	const [choice] = choices;
	if (choice === undefined || choices.length > 1) return undefined;
	if (choice.finish_reason !== null || choice.logprobs !== undefined) return undefined;
	for (const name in choice.delta) if (name !== "content") return undefined;
	const { content } = choice.delta;
	return typeof content === "string" ? content : undefined;
}

/** Index after the quotation mark that starts a member's string; undefined if the value is no string. */
function valueAt(payload: string, nameEnd: number): number | undefined {
	let at = nameEnd;
	for (const sign of [":", '"']) {
		while (payload[at] === " ") at += 1;
		if (payload[at] !== sign) return undefined;
		at += 1;
	}
	return at;
}
