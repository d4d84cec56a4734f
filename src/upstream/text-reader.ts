import { crashFailure, isErrorBody, serverFailure } from "./call/failure.ts";
import { isEndMarker, parseEvent } from "./call/sse-reader.ts";
import type { StreamGatherer, StreamReader, StreamWire } from "./call/stream-wire.ts";
import { newOtherFields, updateOtherFields } from "./chat/answer-fields.ts";
import type { AnswerFields, TextChunk, TextReply } from "./chat/chat-answer.ts";
import { type ChoiceProgress, newChoiceProgress } from "./chat/chat-choice.ts";
import type { Dialect } from "./dialects.ts";
import { type ReportedUsage, readUsage, UsageTally, withoutCompletion } from "./usage.ts";
import { asArray, asCount, asObject, type JsonObject } from "./wire-value.ts";

/** Reads a streamed text, which is complete when all choices have finished. A class: less to allocate than closures. */
export abstract class TextReader<Choice> implements StreamReader<TextChunk<Choice>> {
	readonly #dialect: Dialect;
	readonly #choicesAsked: number;
	readonly #choicesMax: number;
	readonly #choicesOfPrompt: number | undefined;
	readonly #choices: (ChoiceProgress | undefined)[] = [];
	#tally: UsageTally | undefined;
	#ended = false;
	/** True if output arrived after the newest usage record. */
	#uncounted = false;
	protected readonly soFar = newOtherFields();
	/** True if the server's list of sources has changed and was not sent to the client yet. */
	protected sourcesWait = false;

	constructor(dialect: Dialect, choicesAsked: number, choicesMax: number, choicesOfPrompt?: number) {
		this.#dialect = dialect;
		this.#choicesAsked = choicesAsked;
		this.#choicesMax = choicesMax;
		this.#choicesOfPrompt = choicesOfPrompt;
	}

	protected abstract readChoice(raw: JsonObject, index: number, progress: ChoiceProgress): Choice | undefined;
	protected abstract endOf(index: number, progress: ChoiceProgress): Choice;
	/** Called for an event with output and without usage. `saysSources`: the event changed the lists of sources. */
	protected noteOutput(_payload: string, _chunk: TextChunk<Choice>, _saysSources: boolean): void {
		this.#uncounted = true;
	}

	protected noteSources(): void {}

	accept(payload: string): TextChunk<Choice> | undefined {
		// Ignores events after the end marker, because some servers repeat it.
		if (this.#ended || payload === "") return undefined;
		if (isEndMarker(payload)) {
			this.#ended = true;
			return this.#allFinished() ? undefined : this.#impliedEnd();
		}
		const event = parseEvent(payload);
		if (isErrorBody(event)) throw this.#dialect.failureOfError(event);
		const rawChoices = asArray(event.choices) ?? [];
		const saysSources = updateOtherFields(this.soFar, event);
		if (saysSources) this.noteSources();
		const chunk = this.#readChoices(rawChoices);
		if (this.#noteUsage(event, rawChoices)) this.#uncounted = false;
		else if (chunk !== undefined && chunk.outputBytes > 0) this.noteOutput(payload, chunk, saysSources);
		return chunk;
	}

	#readChoices(rawChoices: readonly unknown[]): TextChunk<Choice> | undefined {
		let kept: Choice[] | undefined;
		let outputBytes = 0;
		for (const raw of rawChoices) {
			const source = asObject(raw);
			if (source === undefined) continue;
			const index = this.#indexOf(source);
			if (index === undefined) throw serverFailure("a choice with an impossible index");
			let progress = this.#choices[index];
			if (progress === undefined) this.#choices[index] = progress = newChoiceProgress();
			const before = progress.outputBytes;
			const choice = this.readChoice(source, index, progress);
			outputBytes += progress.outputBytes - before;
			if (choice === undefined) continue;
			if (kept === undefined) kept = [choice];
			else kept.push(choice);
		}
		if (kept === undefined && !(this.sourcesWait && this.#choices.some((choice) => choice?.started))) return undefined;
		return this.#chunkOf(kept ?? [], outputBytes);
	}

	#chunkOf(kept: readonly Choice[], outputBytes: number): TextChunk<Choice> {
		const fields = this.soFar.about;
		const sources = this.sourcesWait ? this.soFar.sources : undefined;
		this.sourcesWait = false;
		if (fields === undefined && sources === undefined) return { choices: kept, outputBytes };
		return {
			choices: kept,
			outputBytes,
			...(fields === undefined ? {} : { about: fields }),
			...(sources === undefined ? {} : { sources }),
		};
	}

	/** Finishes open choices at the end marker, if the final count shows that the server omitted finish reasons. */
	#impliedEnd(): TextChunk<Choice> {
		const { completionTokens = 0 } = this.#tally?.current() ?? {};
		const counted = this.usageIsFinal() || (this.#dialect.usageStyle !== "per_choice" && !this.#uncounted);
		if (completionTokens === 0 || !counted || this.#choices.length === 0)
			throw crashFailure("the end marker came before the finish of every choice");
		const finishes: Choice[] = [];
		this.#choices.forEach((progress, index) => {
			if (progress !== undefined && !progress.finished) finishes.push(this.endOf(index, progress));
		});
		return this.#chunkOf(finishes, 0);
	}

	/** Records the usage of an event, from its top level or its choices. True if it has usage. */
	#noteUsage({ usage, timings }: JsonObject, rawChoices: readonly unknown[]): boolean {
		const { reasoningTokens } = this.#dialect;
		if (usage !== undefined && usage !== null) {
			const only = rawChoices.length === 1 ? this.#indexOf(asObject(rawChoices[0])) : undefined;
			const finished = this.#allFinished() ? this.#choices.length : 0;
			this.#counts().note(readUsage(usage, reasoningTokens, timings), only, rawChoices.length > 0, finished);
			return true;
		}
		let found = false;
		for (const raw of rawChoices) {
			const choice = asObject(raw);
			const index = this.#indexOf(choice);
			if (asObject(choice?.usage) === undefined || index === undefined) continue;
			this.#counts().noteChoice(readUsage(choice?.usage, reasoningTokens), index, this.#allFinished());
			found = true;
		}
		return found;
	}

	#counts(): UsageTally {
		this.#tally ??= new UsageTally(this.#dialect.usageStyle, this.#choicesOfPrompt);
		return this.#tally;
	}

	#indexOf(choice: JsonObject | undefined): number | undefined {
		return asCount(choice?.index ?? 0, this.#choicesMax - 1);
	}

	#allFinished(): boolean {
		if (this.#choices.length === 0) return false;
		for (const progress of this.#choices) if (progress !== undefined && !progress.finished) return false;
		return true;
	}

	ended(): boolean {
		return this.#ended;
	}

	/** False while a choice has not started, because servers may stream choices one after the other. */
	finished(): boolean {
		return this.#allFinished() && this.#choices.filter(Boolean).length >= this.#choicesAsked;
	}

	usage(): ReportedUsage | undefined {
		const current = this.#tally?.current();
		return this.#uncounted && !this.usageIsFinal() ? withoutCompletion(current) : current;
	}

	usageIsFinal(): boolean {
		return this.#tally?.isFinal() ?? false;
	}
}

/** Joins the chunks of chats and completions. `choiceOf` converts a joined choice to one of an unstreamed answer. */
export function gatherText<Part extends { readonly index: number }, Choice>(
	wire: StreamWire<TextChunk<Part>>,
	choiceOf: (merged: Part) => Choice,
): StreamGatherer<TextReply<Choice>, TextChunk<Part>> {
	const merged: (Part | undefined)[] = [];
	let outputBytes = 0;
	let about: AnswerFields | undefined;
	let sources: AnswerFields | undefined;
	return {
		wire,
		add(chunk) {
			// The casts are safe, because a choice is JSON and merging keeps the type of each member.
			for (const choice of chunk.choices)
				merged[choice.index] = merge({ ...merged[choice.index] }, choice as JsonObject) as Part;
			outputBytes += chunk.outputBytes;
			about = chunk.about ?? about;
			sources = chunk.sources ?? sources;
			return chunk.choicesText === undefined ? JSON.stringify(chunk.choices).length : chunk.outputBytes;
		},
		answer: (usage) => ({
			choices: merged.flatMap((choice) => (choice === undefined ? [] : [choiceOf(choice)])),
			usage,
			outputBytes,
			...(about === undefined ? {} : { about }),
			...(sources === undefined ? {} : { sources }),
		}),
	};
}

/** Members whose fragments are concatenated to one text. */
const TEXTS: ReadonlySet<string> = new Set(
	"content text refusal reasoning_content name arguments input data transcript".split(" "),
);

/** Adds a fragment: extends texts and lists, merges tool calls by index and objects by member. */
function merge(into: Record<string, unknown>, piece: JsonObject): Record<string, unknown> {
	for (const name in piece) into[name] = joined(name, into[name], piece[name]);
	return into;
}

function joined(name: string, before: unknown, piece: unknown): unknown {
	if (piece === null || piece === undefined) return before ?? piece;
	if (typeof before === "string" && typeof piece === "string") return TEXTS.has(name) ? before + piece : piece;
	if (Array.isArray(before) && Array.isArray(piece)) {
		for (const item of piece) {
			if (name === "tool_calls" && before[item.index] !== undefined) merge(before[item.index], item);
			else before.push(item);
		}
		return before;
	}
	const [object, members] = [asObject(before), asObject(piece)];
	return object === undefined || members === undefined ? piece : merge({ ...object }, members);
}
