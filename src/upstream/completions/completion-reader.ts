/** Reads text completions, streamed and unstreamed. */
import { createTimeSlice } from "../../base/time-slice.ts";
import { failed, unreadable } from "../call/failure.ts";
import { isError } from "../call/upstream-error.ts";
import { aboutOf } from "../chat/answer-about.ts";
import { type ChoiceProgress, finishReason } from "../chat/chat-choice.ts";
import type { Dialect } from "../dialects.ts";
import { TextReader } from "../text-reader.ts";
import { readUsage } from "../usage.ts";
import { asArray, asCount, asObject, asObjects, asText, type JsonObject } from "../wire-value.ts";
import type { CompletionChoice, CompletionFinish, CompletionReply, CompletionShape } from "./completion-answer.ts";
import { completionLogprobs, completionLogprobsInTurns } from "./completion-logprobs.ts";

/** Reads a streamed text completion. */
export class CompletionReader extends TextReader<CompletionChoice> {
	constructor(dialect: Dialect, { prompts, n }: CompletionShape) {
		super(dialect, prompts * n, prompts * n, n);
	}

	/** Empty parts are left out, so that the first event is the first token. */
	protected override readChoice(
		raw: JsonObject,
		index: number,
		progress: ChoiceProgress,
	): CompletionChoice | undefined {
		const finish = completionFinish(raw.finish_reason);
		const text = asText(raw.text ?? "");
		if (text === undefined) throw failed("a choice whose text is none");
		progress.finished ||= finish !== null;
		if (text === "" && finish === null) return undefined;
		progress.outputBytes += Buffer.byteLength(text);
		return { text, index, logprobs: completionLogprobs(raw.logprobs), finish_reason: finish };
	}

	protected override endOf(index: number): CompletionChoice {
		return { text: "", index, logprobs: null, finish_reason: "stop" };
	}
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
	return { choices, usage: partial ? undefined : usage, outputBytes, ...fields };
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
