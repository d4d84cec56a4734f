import type { Dialect } from "../dialects.ts";
import { TextReader } from "../text-reader.ts";
import type { JsonObject } from "../wire-value.ts";
import type { ChatChunk, ChatChunkChoice } from "./chat-answer.ts";
import { CHOICES_MAX, type ChoiceProgress, impliedFinish, openingDelta, rebuildChunkChoice } from "./chat-choice.ts";
import { PlainEvents } from "./plain-event.ts";

/** Reads a streamed chat. */
export class ChatReader extends TextReader<ChatChunkChoice> {
	/** Undefined before the first output without a usage record. */
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
		return { index, delta: openingDelta(progress), finish_reason: impliedFinish(progress) };
	}
}
