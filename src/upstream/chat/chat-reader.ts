import { isEndMarker, parseEvent } from "../call/event-payload.ts";
import { died, failed } from "../call/failure.ts";
import type { StreamReader } from "../call/stream-wire.ts";
import { isError } from "../call/upstream-error.ts";
import type { Dialect } from "../dialects.ts";
import { withoutCompletion } from "../usage.ts";
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
import { createUsageTally } from "./chat-tally.ts";

/** A proper end: every choice finished, and the marker or usage seen. */
export function createChatReader(dialect: Dialect): StreamReader<ChatChunk> {
	const choices: (ChoiceProgress | undefined)[] = [];
	const tally = createUsageTally(dialect.usageStyle);
	let ended = false;
	/** Something was generated after the last record. */
	let uncounted = false;
	const soFar = newAboutSoFar();
	/** Sources that no chunk has taken along yet. */
	let sourcesWait = false;

	function accept(payload: string): ChatChunk | undefined {
		// What follows the marker is nobody's: some servers repeat it.
		if (ended) return undefined;
		if (isEndMarker(payload)) {
			ended = true;
			return allFinished() ? undefined : impliedEnd();
		}
		if (payload === "") return undefined;
		const event = parseEvent(payload);
		if (isError(event)) throw dialect.failureOfError(event);
		const rawChoices = asArray(event.choices) ?? [];
		if (noteAbout(soFar, event)) sourcesWait = true;
		const chunk = readChoices(rawChoices);
		if (event.usage !== undefined && event.usage !== null) noteUsage(event.usage, rawChoices);
		else if (chunk !== undefined && chunk.outputBytes > 0) uncounted = true;
		return chunk;
	}

	function readChoices(rawChoices: readonly unknown[]): ChatChunk | undefined {
		let kept: ChatChunkChoice[] | undefined;
		let outputBytes = 0;
		for (const raw of rawChoices) {
			const source = asObject(raw);
			if (source === undefined) continue;
			const index = asCount(source.index ?? 0, CHOICES_MAX - 1);
			if (index === undefined) throw failed("a choice with an impossible index");
			let progress = choices[index];
			if (progress === undefined) choices[index] = progress = newChoiceProgress();
			const before = progress.outputBytes;
			const choice = rebuildChunkChoice(source, index, progress);
			outputBytes += progress.outputBytes - before;
			if (choice === undefined) continue;
			if (kept === undefined) kept = [choice];
			else kept.push(choice);
		}
		if (kept === undefined && !(sourcesWait && choices.some((choice) => choice?.started))) return undefined;
		return chunkOf(kept ?? [], outputBytes);
	}

	function chunkOf(kept: readonly ChatChunkChoice[], outputBytes: number): ChatChunk {
		const fields = soFar.about;
		const sources = sourcesWait ? soFar.sources : undefined;
		sourcesWait = false;
		if (fields === undefined && sources === undefined) return { choices: kept, outputBytes };
		return {
			choices: kept,
			outputBytes,
			...(fields === undefined ? {} : { about: fields }),
			...(sources === undefined ? {} : { sources }),
		};
	}

	/** An answer with its final count and the end marker is whole: its server forgot to say how it finished. */
	function impliedEnd(): ChatChunk {
		const { completionTokens = 0 } = tally.current() ?? {};
		const counted = tally.isFinal() || (dialect.usageStyle !== "per_choice" && !uncounted);
		if (completionTokens === 0 || !counted || choices.length === 0)
			throw died("the end marker came before the finish of every choice");
		const finishes: ChatChunkChoice[] = [];
		choices.forEach((progress, index) => {
			if (progress !== undefined && !progress.finished)
				finishes.push({ index, delta: openingDelta(progress), finish_reason: impliedFinish(progress) });
		});
		return chunkOf(finishes, 0);
	}

	function noteUsage(record: unknown, rawChoices: readonly unknown[]): void {
		const only = rawChoices.length === 1 ? asCount(asObject(rawChoices[0])?.index ?? 0, CHOICES_MAX - 1) : undefined;
		tally.note(record, only, rawChoices.length > 0, allFinished() ? choices.length : 0);
		uncounted = false;
	}

	function allFinished(): boolean {
		if (choices.length === 0) return false;
		for (const progress of choices) if (progress !== undefined && !progress.finished) return false;
		return true;
	}

	return {
		accept,
		ended: () => ended,
		complete: () => ended || (allFinished() && tally.isFinal()),
		usage: () => (uncounted && !tally.isFinal() ? withoutCompletion(tally.current()) : tally.current()),
		usageIsFinal: tally.isFinal,
	};
}
