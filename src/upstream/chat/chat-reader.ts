import { isEndMarker, parseEvent } from "../call/event-payload.ts";
import { died, failed } from "../call/failure.ts";
import type { StreamReader } from "../call/stream-wire.ts";
import { isError } from "../call/upstream-error.ts";
import type { Dialect } from "../dialects.ts";
import { type ReportedUsage, withoutCompletion } from "../usage.ts";
import { UsageTally } from "../usage-tally.ts";
import { asArray, asCount, asObject } from "../wire-value.ts";
import { newAboutSoFar, noteAbout } from "./answer-about.ts";
import type { ChatChunk, ChatChunkChoice } from "./chat-answer.ts";
import {
	CHOICES_MAX,
	type ChoiceProgress,
	impliedFinish,
	newChoiceProgress,
	openingDelta,
	rebuildChunkChoice,
} from "./chat-choice.ts";
import { PlainEvents } from "./plain-event.ts";

/**
 * Reads a streamed chat. It is complete when all requested choices finished and the end marker or the usage arrived. A
 * class: there is one per open stream.
 */
export class ChatReader implements StreamReader<ChatChunk> {
	readonly #dialect: Dialect;
	readonly #choicesAsked: number;
	readonly #choices: (ChoiceProgress | undefined)[] = [];
	/** Undefined before the first usage record. */
	#tally: UsageTally | undefined;
	#ended = false;
	/** Output arrived after the last usage record. */
	#uncounted = false;
	readonly #soFar = newAboutSoFar();
	/** Undefined before the first output without a usage record. */
	#plain: PlainEvents | undefined;
	/** Sources that no chunk has carried yet. */
	#sourcesWait = false;

	constructor(dialect: Dialect, choicesAsked = 1) {
		this.#dialect = dialect;
		this.#choicesAsked = choicesAsked;
	}

	accept(payload: string): ChatChunk | undefined {
		// Ignores events after the end marker: some servers repeat it.
		if (this.#ended) return undefined;
		const plain = this.#sourcesWait ? undefined : this.#plain?.read(payload, this.#soFar.about);
		if (plain !== undefined) {
			this.#uncounted = true;
			return plain;
		}
		if (isEndMarker(payload)) {
			this.#ended = true;
			return this.#allFinished() ? undefined : this.#impliedEnd();
		}
		if (payload === "") return undefined;
		const event = parseEvent(payload);
		if (isError(event)) throw this.#dialect.failureOfError(event);
		const rawChoices = asArray(event.choices) ?? [];
		const saysSources = noteAbout(this.#soFar, event);
		if (saysSources) this.#sourcesWait = true;
		const chunk = this.#readChoices(rawChoices);
		if (event.usage !== undefined && event.usage !== null) this.#noteUsage(event.usage, rawChoices);
		else if (chunk !== undefined && chunk.outputBytes > 0) {
			this.#uncounted = true;
			if (!saysSources) this.#remember(payload, chunk);
		}
		return chunk;
	}

	#remember(payload: string, chunk: ChatChunk): void {
		this.#plain ??= new PlainEvents();
		this.#plain.remember(payload, chunk);
	}

	#readChoices(rawChoices: readonly unknown[]): ChatChunk | undefined {
		let kept: ChatChunkChoice[] | undefined;
		let outputBytes = 0;
		for (const raw of rawChoices) {
			const source = asObject(raw);
			if (source === undefined) continue;
			const index = asCount(source.index ?? 0, CHOICES_MAX - 1);
			if (index === undefined) throw failed("a choice with an impossible index");
			let progress = this.#choices[index];
			if (progress === undefined) this.#choices[index] = progress = newChoiceProgress();
			const before = progress.outputBytes;
			const choice = rebuildChunkChoice(source, index, progress);
			outputBytes += progress.outputBytes - before;
			if (choice === undefined) continue;
			if (kept === undefined) kept = [choice];
			else kept.push(choice);
		}
		if (kept === undefined && !(this.#sourcesWait && this.#choices.some((choice) => choice?.started))) return undefined;
		return this.#chunkOf(kept ?? [], outputBytes);
	}

	#chunkOf(kept: readonly ChatChunkChoice[], outputBytes: number): ChatChunk {
		const fields = this.#soFar.about;
		const sources = this.#sourcesWait ? this.#soFar.sources : undefined;
		this.#sourcesWait = false;
		if (fields === undefined && sources === undefined) return { choices: kept, outputBytes };
		return {
			choices: kept,
			outputBytes,
			...(fields === undefined ? {} : { about: fields }),
			...(sources === undefined ? {} : { sources }),
		};
	}

	/**
	 * Finishes the open choices at the end marker. An answer with its final count is complete: its server forgot the
	 * finish reasons.
	 */
	#impliedEnd(): ChatChunk {
		const { completionTokens = 0 } = this.#tally?.current() ?? {};
		const counted = this.usageIsFinal() || (this.#dialect.usageStyle !== "per_choice" && !this.#uncounted);
		if (completionTokens === 0 || !counted || this.#choices.length === 0)
			throw died("the end marker came before the finish of every choice");
		const finishes: ChatChunkChoice[] = [];
		this.#choices.forEach((progress, index) => {
			if (progress !== undefined && !progress.finished)
				finishes.push({ index, delta: openingDelta(progress), finish_reason: impliedFinish(progress) });
		});
		return this.#chunkOf(finishes, 0);
	}

	#noteUsage(record: unknown, rawChoices: readonly unknown[]): void {
		const only = rawChoices.length === 1 ? asCount(asObject(rawChoices[0])?.index ?? 0, CHOICES_MAX - 1) : undefined;
		this.#tally ??= new UsageTally(this.#dialect.usageStyle);
		this.#tally.note(record, only, rawChoices.length > 0, this.#allFinished() ? this.#choices.length : 0);
		this.#uncounted = false;
	}

	#allFinished(): boolean {
		if (this.#choices.length === 0) return false;
		for (const progress of this.#choices) if (progress !== undefined && !progress.finished) return false;
		return true;
	}

	ended(): boolean {
		return this.#ended;
	}

	complete(): boolean {
		if (this.#ended) return true;
		// Servers that stream one choice after the other may have choices that have not started.
		return this.#choices.length >= this.#choicesAsked && this.#allFinished() && this.usageIsFinal();
	}

	usage(): ReportedUsage | undefined {
		const current = this.#tally?.current();
		return this.#uncounted && !this.usageIsFinal() ? withoutCompletion(current) : current;
	}

	usageIsFinal(): boolean {
		return this.#tally?.isFinal() ?? false;
	}
}
