import type { Model } from "../../catalog/model.ts";
import type { CallContext } from "../call/attempt.ts";
import type { StreamCall } from "../call/stream.ts";
import type { StreamWire } from "../call/stream-wire.ts";
import type { UnaryCall } from "../call/unary.ts";
import { type GenerationRequest, generationText } from "../generation-request.ts";
import type { Replica } from "../replicas/replica.ts";
import { parseJson } from "../wire-value.ts";
import type { CompletionChunk, CompletionReply, CompletionShape } from "./completion-answer.ts";
import { collectCompletion } from "./completion-collect.ts";
import { createCompletionReader, readCompletion, readCompletionInTurns } from "./completion-reader.ts";

/** What a customer's text completion asks for, on its way to a replica. */
export interface CompletionCallInput extends Pick<GenerationRequest, "fields" | "prompt"> {
	/** For each choice. */
	readonly maxOutputTokens: number;
	readonly shape: CompletionShape;
}

const PATH = "/completions";

/** A completion whose answer is streamed. */
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

/** A completion whose answer comes in one piece. */
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
			// Where a whole answer's usage leaves choices out, the stream's does not.
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
		reader: (dialect) => createCompletionReader(dialect, shape),
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
