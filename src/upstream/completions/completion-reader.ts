/** Reads text completions, streamed and unstreamed. */
import { createTimeSlice } from "../../base/time-slice.ts";
import { isEndMarker, parseEvent } from "../call/event-payload.ts";
import { died, failed, unreadable } from "../call/failure.ts";
import type { StreamReader } from "../call/stream-wire.ts";
import { isError } from "../call/upstream-error.ts";
import { aboutOf, newAboutSoFar, noteAbout } from "../chat/answer-about.ts";
import { finishReason } from "../chat/chat-choice.ts";
import type { Dialect } from "../dialects.ts";
import { readUsage, withoutCompletion } from "../usage.ts";
import { UsageTally } from "../usage-tally.ts";
import { asArray, asCount, asObject, asObjects, asText, type JsonObject } from "../wire-value.ts";
import type {
	CompletionChoice,
	CompletionChunk,
	CompletionFinish,
	CompletionReply,
	CompletionShape,
} from "./completion-answer.ts";
import { completionLogprobs, completionLogprobsInTurns } from "./completion-logprobs.ts";

export function createCompletionReader(dialect: Dialect, shape: CompletionShape): StreamReader<CompletionChunk> {
	const choicesMax = shape.prompts * shape.n;
	/** By index: whether the choice has its finish. */
	const finished: (boolean | undefined)[] = [];
	const tally = new UsageTally(dialect.usageStyle, shape.n);
	let ended = false;
	/** Output arrived after the last usage record. */
	let uncounted = false;
	const soFar = newAboutSoFar();

	function accept(payload: string): CompletionChunk | undefined {
		// Ignores events after the end marker: some servers repeat it.
		if (ended || payload === "") return undefined;
		if (isEndMarker(payload)) {
			ended = true;
			return allFinished() ? undefined : impliedEnd();
		}
		const event = parseEvent(payload);
		if (isError(event)) throw dialect.failureOfError(event);
		noteAbout(soFar, event);
		const rawChoices = asObjects(event.choices);
		const chunk = readChoices(rawChoices);
		const only = rawChoices.length === 1 ? indexOf(rawChoices[0] as JsonObject, choicesMax) : undefined;
		if (event.usage !== undefined && event.usage !== null) {
			tally.note(event.usage, only, rawChoices.length > 0, allFinished() ? finished.length : 0);
			uncounted = false;
		} else if (chunk !== undefined && chunk.outputBytes > 0) uncounted = true;
		return chunk;
	}

	/** Empty parts are left out, so that the first event is the first token. */
	function readChoices(rawChoices: readonly JsonObject[]): CompletionChunk | undefined {
		const choices: CompletionChoice[] = [];
		let outputBytes = 0;
		for (const raw of rawChoices) {
			const index = indexOf(raw, choicesMax);
			const finish = completionFinish(raw.finish_reason);
			const text = asText(raw.text ?? "");
			if (text === undefined) throw failed("a choice whose text is none");
			finished[index] = finished[index] === true || finish !== null;
			if (text === "" && finish === null) continue;
			outputBytes += Buffer.byteLength(text);
			choices.push({ text, index, logprobs: completionLogprobs(raw.logprobs), finish_reason: finish });
		}
		return choices.length === 0 ? undefined : chunkOf(choices, outputBytes);
	}

	function chunkOf(choices: readonly CompletionChoice[], outputBytes: number): CompletionChunk {
		const fields = soFar.about;
		return fields === undefined ? { choices, outputBytes } : { choices, outputBytes, about: fields };
	}

	/** As for chats: an answer with its final count and the end marker is complete. */
	function impliedEnd(): CompletionChunk {
		const { completionTokens = 0 } = tally.current() ?? {};
		const counted = tally.isFinal() || (dialect.usageStyle !== "per_choice" && !uncounted);
		if (completionTokens === 0 || !counted || finished.length === 0)
			throw died("the end marker came before the finish of every choice");
		const finishes: CompletionChoice[] = [];
		finished.forEach((done, index) => {
			if (!done) finishes.push({ text: "", index, logprobs: null, finish_reason: "stop" });
		});
		return chunkOf(finishes, 0);
	}

	function allFinished(): boolean {
		if (finished.length === 0) return false;
		for (const done of finished) if (done === false) return false;
		return true;
	}

	const complete = () => allFinished() && finished.filter(Boolean).length === choicesMax && tally.isFinal();
	return {
		accept,
		ended: () => ended,
		complete: () => ended || complete(),
		usage: () => (uncounted && !tally.isFinal() ? withoutCompletion(tally.current()) : tally.current()),
		usageIsFinal: () => tally.isFinal(),
	};
}

/** Reads an unstreamed answer. Throws UpstreamFailure if it is no completion. */
export function readCompletion(
	parsed: unknown,
	dialect: Dialect,
	shape: CompletionShape,
	logprobsOf: (value: unknown) => JsonObject | null = (value) => completionLogprobs(value),
): CompletionReply {
	const body = asObject(parsed);
	if (body !== undefined && isError(body)) throw dialect.failureOfError(body);
	const rawChoices = asArray(body?.choices);
	if (rawChoices === undefined || rawChoices.length === 0) throw unreadable("a completion without choices");
	if (rawChoices.length > shape.prompts * shape.n) throw unreadable("a completion with too many choices");
	const usage = readUsage(body?.usage);
	const counted = (usage?.completionTokens ?? 0) > 0;
	let outputBytes = 0;
	const choices = rawChoices.map((raw, place) => {
		const choice = asObject(raw);
		const text = asText(choice?.text);
		if (choice === undefined || text === undefined) throw unreadable("a choice without text");
		const finish = completionFinish(choice.finish_reason) ?? (counted ? "stop" : null);
		if (finish === null) throw failed("a choice without a finish reason");
		outputBytes += Buffer.byteLength(text);
		const index = indexOf(choice, shape.prompts * shape.n, place);
		return { text, index, logprobs: logprobsOf(choice.logprobs), finish_reason: finish };
	});
	const partial = choices.length > 1 && !dialect.unaryUsageCoversChoices;
	const { about } = aboutOf(body ?? {});
	const fields = about === undefined ? {} : { about };
	return { choices, usage: partial ? undefined : usage, outputBytes, outputEvents: 0, ...fields };
}

/** As `readCompletion`, for answers that may be large: `logprobs` are rebuilt in time slices. */
export async function readCompletionInTurns(
	parsed: unknown,
	dialect: Dialect,
	shape: CompletionShape,
): Promise<CompletionReply> {
	const rebuilt = new Map<unknown, JsonObject | null>();
	const timeSlice = createTimeSlice();
	for (const { logprobs } of asObjects(asObject(parsed)?.choices).slice(0, shape.prompts * shape.n))
		if (asObject(logprobs) !== undefined) rebuilt.set(logprobs, await completionLogprobsInTurns(logprobs, timeSlice));
	return readCompletion(parsed, dialect, shape, (raw) => rebuilt.get(raw) ?? null);
}

/** Throws UpstreamFailure for a finish reason that reports a fault of the server. */
function completionFinish(value: unknown): CompletionFinish | null {
	const reason = finishReason(value);
	return reason === null || reason === "length" || reason === "content_filter" ? reason : "stop";
}

/** `place`: the index of a choice that has none. */
function indexOf(raw: JsonObject, choicesMax: number, place = 0): number {
	const index = asCount(raw.index ?? place, choicesMax - 1);
	if (index === undefined) throw failed("a choice with an impossible index");
	return index;
}
