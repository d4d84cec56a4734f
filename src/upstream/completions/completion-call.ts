import type { Model } from "../../catalog/model.ts";
import type { CallContext } from "../call/attempt.ts";
import type { StreamCall } from "../call/stream.ts";
import type { StreamWire } from "../call/stream-wire.ts";
import type { UnaryCall } from "../call/unary.ts";
import { type GenerationRequest, generationText, joinReplies, seedOf } from "../generation-request.ts";
import { Prompt } from "../prompt.ts";
import type { Replica } from "../replicas/replica.ts";
import { asArray, parseJson } from "../wire-value.ts";
import type { CompletionChunk, CompletionReply, CompletionShape } from "./completion-answer.ts";
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
	// Read before a prompt that is sent becomes text.
	const prompts = shape.prompts === 1 ? [input.prompt.value] : (asArray(input.prompt.value) ?? []);
	return {
		context,
		run(ask, replica) {
			const { dialect } = replica;
			const post = (of: CompletionCallInput) =>
				ask.post({
					path: PATH,
					body: textOf(replica, model, of, false),
					read: (parsed) => readCompletionInTurns(parsed, dialect, of.shape),
				});
			const isWhole = shape.prompts * shape.n === 1 || dialect.unaryUsageCoversChoices;
			return isWhole ? post(input) : oneByOne(input, prompts, post);
		},
	};
}

/** This dialect's usage omits all choices but the first, so each choice is a request of its own. */
async function oneByOne(
	input: CompletionCallInput,
	prompts: readonly unknown[],
	post: (of: CompletionCallInput) => Promise<CompletionReply>,
): Promise<CompletionReply> {
	const { fields, maxOutputTokens, shape } = input;
	const replies: CompletionReply[] = [];
	for (const prompt of prompts)
		for (let choice = 0; choice < shape.n; choice += 1)
			replies.push(
				await post({
					fields: seedOf(fields, choice),
					prompt: new Prompt(prompt),
					maxOutputTokens,
					shape: { prompts: 1, n: 1 },
				}),
			);
	return joinReplies(replies, shape.n);
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
