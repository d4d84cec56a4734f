import type { Model } from "../../catalog/model.ts";
import type { CallContext } from "../call/attempt.ts";
import { died } from "../call/failure.ts";
import type { StreamCall } from "../call/stream.ts";
import type { AnswerStream, StreamWire } from "../call/stream-wire.ts";
import type { UnaryCall } from "../call/unary.ts";
import type { AnswerFields } from "../chat/chat-answer.ts";
import { type GenerationRequest, generationText } from "../generation-request.ts";
import type { Replica } from "../replicas/replica.ts";
import { asArray, type JsonObject, parseJson } from "../wire-value.ts";
import type { CompletionChoice, CompletionChunk, CompletionReply, CompletionShape } from "./completion-answer.ts";
import { CompletionReader, readCompletion, readCompletionInTurns } from "./completion-reader.ts";

/** A customer's text completion, as passed to a replica. */
export interface CompletionCallInput extends Pick<GenerationRequest, "fields" | "prompt"> {
	/** Per choice. */
	readonly maxOutputTokens: number;
	readonly shape: CompletionShape;
}

const PATH = "/completions";

/** Returns the call of a streamed completion. */
export function completionStream(
	model: Model,
	context: CallContext,
	input: CompletionCallInput,
): StreamCall<CompletionChunk> {
	const wire = wireOf(input.shape);
	return {
		context,
		wire,
		body: (replica) => textOf(replica, model, input, true),
		over: () => input.prompt.letGo(),
	};
}

/** Returns the call of an unstreamed completion. */
export function completionWhole(
	model: Model,
	context: CallContext,
	input: CompletionCallInput,
): UnaryCall<CompletionReply> {
	const { shape } = input;
	return {
		context,
		run(ask, replica) {
			const { dialect } = replica;
			// This dialect's unstreamed usage omits choices; its streamed usage covers all.
			const streamed = shape.prompts * shape.n > 1 && !dialect.unaryUsageCoversChoices;
			const body = textOf(replica, model, input, streamed);
			if (streamed) return collectCompletion(ask.stream(wireOf(shape), body));
			return ask.post({ path: PATH, body, read: (parsed) => readCompletionInTurns(parsed, dialect, shape) });
		},
	};
}

function wireOf(shape: CompletionShape): StreamWire<CompletionChunk> {
	return {
		path: PATH,
		reader: (dialect) => new CompletionReader(dialect, shape),
		whole(text, dialect) {
			const { usage, ...chunk } = readCompletion(parseJson(text), dialect, shape);
			return { chunk, usage };
		},
	};
}

function textOf(replica: Replica, model: Model, input: CompletionCallInput, stream: boolean): string {
	const { fields, prompt, maxOutputTokens, shape } = input;
	const { parameters } = model;
	return generationText(
		replica,
		{ kind: "completions", fields, prompt, maxOutputTokens, n: shape.n, parameters },
		stream,
	);
}

/** Collects a stream into a whole answer, for servers whose unstreamed usage covers one choice only. */
async function collectCompletion(
	stream: Pick<AnswerStream<CompletionChunk>, "next" | "usage">,
): Promise<CompletionReply> {
	const choices: CompletionChoice[] = [];
	const logprobs: JsonObject[][] = [];
	let outputBytes = 0;
	let outputEvents = 0;
	let about: AnswerFields | undefined;
	for (let chunks = await stream.next(); chunks !== null; chunks = await stream.next()) {
		for (const chunk of chunks) {
			outputBytes += chunk.outputBytes;
			if (chunk.outputBytes > 0) outputEvents += 1;
			about = chunk.about ?? about;
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
	const usage = stream.usage();
	return { choices: whole, usage, outputBytes, outputEvents, ...(about === undefined ? {} : { about }) };
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
