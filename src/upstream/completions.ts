import { createTimeSlice, mapInTurns, type TimeSlice } from "../base/time-slice.ts";
import type { Model } from "../catalog/model.ts";
import type { CallContext } from "./call/attempt.ts";
import { isErrorBody, serverFailure, unreadableAnswer } from "./call/failure.ts";
import type { StreamCall } from "./call/stream.ts";
import type { StreamWire } from "./call/stream-wire.ts";
import type { UnaryCall } from "./call/unary.ts";
import { readOtherFields } from "./chat/answer-fields.ts";
import type { TextChunk, TextReply } from "./chat/chat-answer.ts";
import { type ChoiceProgress, finishReason } from "./chat/chat-choice.ts";
import type { Dialect } from "./dialects.ts";
import { fieldsForChoice, type GenerationRequest, generationBody, joinReplies } from "./generation-request.ts";
import { Prompt } from "./prompt.ts";
import type { Replica } from "./replicas/replica.ts";
import { gatherText, TextReader } from "./text-reader.ts";
import { usageOfAnswer } from "./usage.ts";
import { asArray, asCount, asObject, asObjects, asText, type JsonObject, parseJson } from "./wire-value.ts";

export type CompletionFinish = "stop" | "length" | "content_filter";

/** A choice or a part of a choice, ready for JSON.stringify in the order of OpenAI's fields. */
export interface CompletionChoice<Finish = CompletionFinish | null> {
	readonly text: string;
	/** `n` × index of the prompt + index of the choice. */
	readonly index: number;
	readonly logprobs: JsonObject | null;
	readonly finish_reason: Finish;
}

export type CompletionChunk = TextChunk<CompletionChoice>;
export type CompletionReply = TextReply<CompletionChoice<CompletionFinish>>;

export interface CompletionShape {
	readonly prompts: number;
	readonly n: number;
}

export interface CompletionCallInput extends Pick<GenerationRequest, "fields" | "prompt"> {
	readonly maxOutputTokens: number;
	readonly shape: CompletionShape;
}

const PATH = "/completions";

export function completionStream(
	model: Model,
	context: CallContext,
	input: CompletionCallInput,
): StreamCall<CompletionChunk> {
	const wire = wireOf(input.shape);
	const body = (replica: Replica) => textOf(replica, model, context, input, true);
	return { context, wire, body, over: () => input.prompt.letGo() };
}

export function unstreamedCompletion(
	model: Model,
	context: CallContext,
	input: CompletionCallInput,
): UnaryCall<CompletionReply> {
	const { shape } = input;
	const isOne = shape.prompts * shape.n === 1;
	// Read before sending, because sending replaces the prompts by text. A single prompt is not kept twice.
	const prompts = isOne ? [] : shape.prompts === 1 ? [input.prompt.value] : (asArray(input.prompt.value) ?? []);
	return {
		context,
		run(ask, replica) {
			const { dialect } = replica;
			const post = (of: CompletionCallInput) =>
				ask.post({
					path: PATH,
					body: textOf(replica, model, context, of, false),
					read: (parsed) => readCompletionInTurns(parsed, dialect, of.shape),
					// The cast assumes that every choice has a finish reason; if the server sent none, it stays null.
					gather: () => gatherText(wireOf(of.shape), (choice) => choice as CompletionChoice<CompletionFinish>),
				});
			return isOne || dialect.unaryUsageCoversChoices ? post(input) : oneByOne(input, prompts, post);
		},
	};
}

/** Requests each choice separately, because this dialect's usage covers only the first choice. */
async function oneByOne(
	input: CompletionCallInput,
	prompts: readonly unknown[],
	post: (of: CompletionCallInput) => Promise<CompletionReply>,
): Promise<CompletionReply> {
	const replies: CompletionReply[] = [];
	for (const value of prompts) {
		const prompt = new Prompt(value);
		try {
			for (let choice = 0; choice < input.shape.n; choice += 1) {
				const one = { ...input, fields: fieldsForChoice(input.fields, choice), prompt, shape: { prompts: 1, n: 1 } };
				replies.push(await post(one));
			}
		} finally {
			prompt.letGo();
		}
	}
	return joinReplies(replies, input.shape.n);
}

const wireOf = (shape: CompletionShape): StreamWire<CompletionChunk> => ({
	path: PATH,
	reader: (dialect) => new CompletionReader(dialect, shape),
	whole(text, dialect) {
		const { usage, ...chunk } = readCompletion(parseJson(text), dialect, shape);
		return { chunk, usage };
	},
});

function textOf(
	replica: Replica,
	{ parameters }: Model,
	{ cacheSalt }: CallContext,
	{ fields, prompt, maxOutputTokens, shape }: CompletionCallInput,
	stream: boolean,
): string {
	const request = { kind: "completions", fields, prompt, maxOutputTokens, n: shape.n, parameters, cacheSalt } as const;
	return generationBody(replica, request, stream);
}

export class CompletionReader extends TextReader<CompletionChoice> {
	constructor(dialect: Dialect, { prompts, n }: CompletionShape) {
		super(dialect, prompts * n, prompts * n, n);
	}

	/** Drops empty parts, so that the first event contains the first token. */
	protected override readChoice(
		raw: JsonObject,
		index: number,
		progress: ChoiceProgress,
	): CompletionChoice | undefined {
		const end = completionFinish(raw.finish_reason);
		const finish = progress.finished ? null : end;
		const text = asText(raw.text ?? "");
		if (text === undefined) throw serverFailure("a choice whose text is none");
		progress.finished ||= finish !== null;
		if (text === "" && finish === null) return undefined;
		progress.outputBytes += Buffer.byteLength(text);
		return { text, index, logprobs: completionLogprobs(raw.logprobs), finish_reason: finish };
	}

	protected override endOf(index: number): CompletionChoice {
		return { text: "", index, logprobs: null, finish_reason: "stop" };
	}
}

export function readCompletion(
	parsed: unknown,
	dialect: Dialect,
	shape: CompletionShape,
	logprobsOf: (value: unknown) => JsonObject | null = (value) => completionLogprobs(value),
): CompletionReply {
	const body = asObject(parsed);
	if (body !== undefined && isErrorBody(body)) throw dialect.failureOfError(body);
	const rawChoices = asArray(body?.choices);
	if (rawChoices === undefined || rawChoices.length === 0) throw unreadableAnswer("a completion without choices");
	if (rawChoices.length > shape.prompts * shape.n) throw unreadableAnswer("a completion with too many choices");
	const usage = usageOfAnswer(body ?? {}, dialect.reasoningTokens, shape.n);
	const counted = (usage?.completionTokens ?? 0) > 0;
	let outputBytes = 0;
	const choices = rawChoices.map((raw, place) => {
		const choice = asObject(raw);
		const text = asText(choice?.text);
		if (choice === undefined || text === undefined) throw unreadableAnswer("a choice without text");
		const finish = completionFinish(choice.finish_reason) ?? (counted ? "stop" : null);
		if (finish === null) throw serverFailure("a choice without a finish reason");
		outputBytes += Buffer.byteLength(text);
		const index = indexOf(choice, shape.prompts * shape.n, place);
		return { text, index, logprobs: logprobsOf(choice.logprobs), finish_reason: finish };
	});
	const partial = choices.length > 1 && !dialect.unaryUsageCoversChoices;
	const { about } = readOtherFields(body ?? {});
	const fields = about === undefined ? {} : { about };
	return { choices, usage: partial ? undefined : usage, outputBytes, ...fields };
}

/** Like `readCompletion`, for large answers: copies `logprobs` in time slices. */
async function readCompletionInTurns(
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

/** Throws UpstreamFailure for a finish reason that reports an error of the server. */
function completionFinish(value: unknown): CompletionFinish | null {
	const reason = finishReason(value);
	return reason === null || reason === "length" || reason === "content_filter" ? reason : "stop";
}

/** Index of the choice; `place` if the server sent none. */
function indexOf(raw: JsonObject, choicesMax: number, place = 0): number {
	const index = asCount(raw.index ?? place, choicesMax - 1);
	if (index === undefined) throw serverFailure("a choice with an impossible index");
	return index;
}

/** Maximum number of alternatives per token; OpenAI's interface allows 5. */
const ALTERNATIVES_MAX = 128;

/** Converts the chat format of logprobs, which newer llama.cpp sends. It has no offsets into the text. */
function completionLogprobs(value: unknown, tops = topsOf(value)?.map(topOf)): JsonObject | null {
	const source = asObject(value);
	if (source === undefined) return null;
	if (Array.isArray(source.content)) return logprobsOfChat(asObjects(source.content), tops);
	const tokens = asArray(source.tokens)?.map((token) => asText(token) ?? "");
	if (tokens === undefined) return null;
	return {
		tokens,
		token_logprobs: asArray(source.token_logprobs)?.map(numberOrNull) ?? null,
		top_logprobs: tops ?? null,
		text_offset: asArray(source.text_offset)?.map((at) => asCount(at, Number.MAX_SAFE_INTEGER) ?? 0) ?? null,
	};
}

async function completionLogprobsInTurns(value: unknown, timeSlice: TimeSlice): Promise<JsonObject | null> {
	const tops = topsOf(value);
	return completionLogprobs(value, tops === undefined ? undefined : await mapInTurns(tops, topOf, timeSlice));
}

function topsOf(value: unknown): readonly unknown[] | undefined {
	const source = asObject(value);
	return Array.isArray(source?.content)
		? asObjects(source.content).map(({ top_logprobs: tops }) => tops ?? [])
		: asArray(source?.top_logprobs);
}

function logprobsOfChat(entries: readonly JsonObject[], tops: readonly (JsonObject | null)[] | undefined): JsonObject {
	return {
		tokens: entries.map((entry) => asText(entry.token) ?? ""),
		token_logprobs: entries.map((entry) => numberOrNull(entry.logprob)),
		top_logprobs: tops,
		text_offset: null,
	};
}

/** Reads alternatives by token, or a list of records as in chats. */
function topOf(value: unknown): JsonObject | null {
	if (Array.isArray(value)) {
		const others = asObjects(value.slice(0, ALTERNATIVES_MAX)).filter(({ logprob }) => typeof logprob === "number");
		return Object.fromEntries(others.map(({ token, logprob }) => [asText(token) ?? "", logprob]));
	}
	const source = asObject(value);
	if (source === undefined) return null;
	return Object.fromEntries(Object.entries(source).filter(([, logprob]) => typeof logprob === "number"));
}

const numberOrNull = (value: unknown): number | null => (typeof value === "number" ? value : null);
