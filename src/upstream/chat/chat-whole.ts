import { createTimeSlice } from "../../base/time-slice.ts";
import { isErrorBody, unreadableAnswer } from "../call/failure.ts";
import type { Dialect } from "../dialects.ts";
import { usageOfAnswer } from "../usage.ts";
import { asArray, asObject, asObjects, type JsonObject } from "../wire-value.ts";
import { readOtherFields } from "./answer-fields.ts";
import type { ChatChoice, ChatChunk, ChatChunkChoice, ChatReply } from "./chat-answer.ts";
import { CHOICES_MAX, newChoiceProgress, rebuildChoice } from "./chat-choice.ts";
import { rebuildLogprobs, rebuildLogprobsInTurns } from "./logprobs.ts";

export function readChatReply(
	parsed: unknown,
	dialect: Dialect,
	logprobsOf: (value: unknown) => JsonObject | null = rebuildLogprobs,
): ChatReply {
	const body = asObject(parsed);
	if (body === undefined) throw unreadableAnswer("an answer that is no JSON object");
	if (isErrorBody(body)) throw dialect.failureOfError(body);
	const rawChoices = asArray(body.choices);
	if (rawChoices === undefined || rawChoices.length === 0) throw unreadableAnswer("an answer without choices");
	if (rawChoices.length > CHOICES_MAX) throw unreadableAnswer("an answer with too many choices");
	const usage = usageOfAnswer(body, dialect.reasoningTokens);
	const counted = (usage?.completionTokens ?? 0) > 0;
	let outputBytes = 0;
	const choices: ChatChoice[] = [];
	for (const [place, raw] of rawChoices.entries()) {
		const progress = newChoiceProgress();
		choices.push(rebuildChoice(raw, place, progress, counted, logprobsOf));
		outputBytes += progress.outputBytes;
	}
	const partial = choices.length > 1 && !dialect.unaryUsageCoversChoices;
	return { choices, usage: partial ? undefined : usage, outputBytes, ...readOtherFields(body) };
}

/** Like `readChatReply`, for large answers: copies `logprobs` in time slices. */
export function readChatReplyInTurns(parsed: unknown, dialect: Dialect): ChatReply | Promise<ChatReply> {
	const choices = asArray(asObject(parsed)?.choices) ?? NO_CHOICES;
	for (const choice of choices)
		if (asObject(asObject(choice)?.logprobs) !== undefined) return readInTurns(parsed, dialect, choices);
	return readChatReply(parsed, dialect, noLogprobs);
}

const NO_CHOICES: readonly unknown[] = [];
const noLogprobs = () => null;

async function readInTurns(parsed: unknown, dialect: Dialect, choices: readonly unknown[]): Promise<ChatReply> {
	const rebuilt = new Map<unknown, JsonObject | null>();
	const timeSlice = createTimeSlice();
	for (const { logprobs } of asObjects(choices).slice(0, CHOICES_MAX))
		if (asObject(logprobs) !== undefined) rebuilt.set(logprobs, await rebuildLogprobsInTurns(logprobs, timeSlice));
	return readChatReply(parsed, dialect, (raw) => rebuilt.get(raw) ?? null);
}

/** Converts an unstreamed answer to a streamed event, for servers that ignore `stream: true`. */
export function chunkOfReply(reply: ChatReply): ChatChunk {
	const choices = reply.choices.map(({ index, message, logprobs, finish_reason }) => ({
		index,
		delta: deltaOfMessage(message),
		...(logprobs === null ? {} : { logprobs }),
		finish_reason,
	}));
	const { outputBytes, about, sources } = reply;
	return {
		choices,
		outputBytes,
		...(about === undefined ? {} : { about }),
		...(sources === undefined ? {} : { sources }),
	};
}

/** Builds a choice from its merged chunks, for servers that stream although no stream was requested. */
export function choiceOfChunks({ index, delta, logprobs, finish_reason }: ChatChunkChoice): ChatChoice {
	const { content = null, refusal = null, tool_calls: calls, ...others } = delta;
	const whole = asArray(calls)?.map((call) => ({ ...asObject(call), index: undefined }));
	const message = { ...others, content, refusal, ...(whole === undefined ? {} : { tool_calls: whole }) };
	return { index, message, logprobs: logprobs ?? null, finish_reason } as ChatChoice;
}

const deltaOfMessage = ({ refusal, tool_calls: calls, ...delta }: JsonObject): JsonObject => ({
	...delta,
	...(refusal === null ? {} : { refusal }),
	...(Array.isArray(calls) ? { tool_calls: calls.map((call, index) => ({ index, ...call })) } : {}),
});
