/** Reads text completions: streamed and whole. */

import type { StreamReader, StreamWire } from "../call/stream-wire.ts";
import { nonsense } from "../call/unary.ts";
import { isError, parseEvent } from "../chat/chat-reader.ts";
import type { Dialect } from "../dialect.ts";
import { type ChatStream, type TokenUsage, UpstreamFailure } from "../reply.ts";
import { readUsage } from "../usage.ts";
import { asArray, asCount, asObject, asObjects, asText, type JsonObject, parseJson } from "../wire-value.ts";
import type { CompletionChoice, CompletionFinish } from "./completion-choice.ts";
import { completionFinish, completionLogprobs } from "./completion-choice.ts";
import { createCompletionTally } from "./completion-usage.ts";

/** One streamed event; never without choices. */
export interface CompletionChunk {
	readonly choices: readonly CompletionChoice[];
	/** Bytes of text in it. */
	readonly outputBytes: number;
}

export interface CompletionReply {
	readonly choices: readonly CompletionChoice<CompletionFinish>[];
	readonly usage: TokenUsage | undefined;
	readonly outputBytes: number;
}

/** How many answers a request asks for. */
export interface CompletionShape {
	readonly prompts: number;
	/** Choices a prompt. */
	readonly n: number;
}

const PATH = "/completions";
const END_MARKER = "[DONE]";

export function completionWire(shape: CompletionShape): StreamWire<CompletionChunk> {
	return {
		path: PATH,
		reader: (dialect) => createCompletionReader(dialect, shape),
		whole(text, dialect) {
			const reply = readCompletion(parseJson(text), dialect, shape);
			return { chunk: { choices: reply.choices, outputBytes: reply.outputBytes }, usage: reply.usage };
		},
	};
}

export const COMPLETION_PATH = PATH;

function createCompletionReader(dialect: Dialect, shape: CompletionShape): StreamReader<CompletionChunk> {
	const choicesMax = shape.prompts * shape.n;
	/** By index: whether the choice has its finish. */
	const finished: (boolean | undefined)[] = [];
	const tally = createCompletionTally(dialect.usageStyle, shape);
	let ended = false;

	function accept(payload: string): CompletionChunk | undefined {
		// What follows the marker is nobody's: some servers repeat it.
		if (ended || payload === "") return undefined;
		if (payload.trim() === END_MARKER) {
			if (!allFinished()) throw died("the end marker came before the finish of every choice");
			ended = true;
			return undefined;
		}
		const event = parseEvent(payload);
		if (isError(event)) throw dialect.failureOfError(event);
		const rawChoices = asObjects(event.choices);
		const chunk = readChoices(rawChoices);
		const only = rawChoices.length === 1 ? indexOf(rawChoices[0] as JsonObject, choicesMax) : undefined;
		tally.note(event.usage, only, rawChoices.length > 0, allFinished());
		return chunk;
	}

	/** Empty parts are left out, so that the first event is the first token. */
	function readChoices(rawChoices: readonly JsonObject[]): CompletionChunk | undefined {
		const choices: CompletionChoice[] = [];
		let outputBytes = 0;
		for (const raw of rawChoices) {
			const index = indexOf(raw, choicesMax);
			const finish = completionFinish(raw.finish_reason);
			const text = asText(raw.text) ?? "";
			finished[index] = finished[index] === true || finish !== null;
			if (text === "" && finish === null) continue;
			outputBytes += Buffer.byteLength(text);
			choices.push({ text, index, logprobs: completionLogprobs(raw.logprobs), finish_reason: finish });
		}
		return choices.length === 0 ? undefined : { choices, outputBytes };
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
		usage: tally.current,
		usageIsFinal: tally.isFinal,
	};
}

/** An unstreamed answer. Throws UpstreamFailure if it is none. */
export function readCompletion(parsed: unknown, dialect: Dialect, shape: CompletionShape): CompletionReply {
	const body = asObject(parsed);
	if (body !== undefined && isError(body)) throw dialect.failureOfError(body);
	const rawChoices = asArray(body?.choices);
	if (rawChoices === undefined || rawChoices.length === 0) throw nonsense("a completion without choices");
	if (rawChoices.length > shape.prompts * shape.n) throw nonsense("a completion with too many choices");
	let outputBytes = 0;
	const choices = rawChoices.map((raw) => {
		const choice = asObject(raw);
		const text = asText(choice?.text);
		if (choice === undefined || text === undefined) throw nonsense("a choice without text");
		const finish = completionFinish(choice.finish_reason);
		if (finish === null) throw new UpstreamFailure("failed", { private: "a choice without a finish reason" });
		outputBytes += Buffer.byteLength(text);
		const index = indexOf(choice, shape.prompts * shape.n);
		return { text, index, logprobs: completionLogprobs(choice.logprobs), finish_reason: finish };
	});
	const partial = choices.length > 1 && !dialect.unaryUsageCoversChoices;
	return { choices, usage: partial ? undefined : readUsage(body?.usage), outputBytes };
}

/** A whole answer by way of a stream, for servers whose whole answers leave out the usage of all choices but one. */
export async function collectCompletion(stream: ChatStream<CompletionChunk>): Promise<CompletionReply> {
	const choices: CompletionChoice[] = [];
	const logprobs: JsonObject[][] = [];
	let outputBytes = 0;
	for (let chunks = await stream.next(); chunks !== null; chunks = await stream.next()) {
		for (const chunk of chunks) {
			outputBytes += chunk.outputBytes;
			for (const part of chunk.choices) {
				const before = choices[part.index];
				const text = (before?.text ?? "") + part.text;
				const entries = logprobs[part.index] ?? [];
				logprobs[part.index] = entries;
				if (part.logprobs !== null) entries.push(part.logprobs);
				choices[part.index] = { ...part, text, finish_reason: part.finish_reason ?? before?.finish_reason ?? null };
			}
		}
	}
	const whole = choices.flatMap((choice) => {
		const { finish_reason: finish, index } = choice;
		if (finish === null) throw died("a choice without a finish reason");
		return [{ ...choice, logprobs: joined(logprobs[index] ?? []), finish_reason: finish }];
	});
	return { choices: whole, usage: stream.usage(), outputBytes };
}

function joined(parts: readonly JsonObject[]): JsonObject | null {
	if (parts.length === 0) return null;
	const join = (name: string) => {
		const lists = parts.map((part) => asArray(part[name]));
		return lists.includes(undefined) ? null : lists.flatMap((list) => list ?? []);
	};
	return {
		tokens: join("tokens"),
		token_logprobs: join("token_logprobs"),
		top_logprobs: join("top_logprobs"),
		text_offset: join("text_offset"),
	};
}

function indexOf(raw: JsonObject, choicesMax: number): number {
	const index = asCount(raw.index ?? 0, choicesMax - 1);
	if (index === undefined) throw new UpstreamFailure("failed", { private: "a choice with an impossible index" });
	return index;
}

function died(detail: string): UpstreamFailure {
	return new UpstreamFailure("died", { private: detail });
}
