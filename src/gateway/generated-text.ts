import { type PromptMeasure, promptTokensMax } from "../admission/prompt-bound.ts";
import type { ChatMode, Model } from "../catalog/model.ts";
import type { CallContext } from "../upstream/call/attempt.ts";
import type { StreamCall } from "../upstream/call/stream.ts";
import type { OutputChunk } from "../upstream/call/stream-wire.ts";
import type { UnaryCall } from "../upstream/call/unary.ts";
import type { AnswerFields } from "../upstream/chat/chat-answer.ts";
import type { Prompt } from "../upstream/prompt.ts";
import type { ReportedUsage } from "../upstream/usage.ts";
import { billOf } from "./bill/bill.ts";
import { usageRecord } from "./bill/usage-record.ts";
import { type JsonBody, readJson } from "./body/json-body.ts";
import { callContext, type Exchange } from "./serve/context.ts";
import type { EndpointInput, InferenceEndpoint } from "./serve/endpoint.ts";
import { createChatEvents, type WrittenChunk } from "./stream-events.ts";
import { tokenRelay } from "./token-relay.ts";

/** What is known of every request for generated text. */
interface TextInput extends EndpointInput {
	readonly prompt: Prompt;
	readonly choices: number;
	readonly measure: PromptMeasure;
	/** For each choice. */
	readonly maxOutputTokens: number;
	/** The client asked for the count as an event of its own. */
	readonly includeUsage: boolean;
}

interface TextReply {
	readonly choices: readonly unknown[];
	readonly usage: ReportedUsage | undefined;
	readonly outputBytes: number;
	readonly outputEvents: number;
	readonly about?: AnswerFields;
	readonly sources?: AnswerFields;
}

/** In what chat and the older completions differ. */
interface TextEndpoint<Input, Reply, Chunk> {
	/** In records and in the catalogue alike. */
	readonly name: ChatMode;
	readonly promptField: string;
	/** The prompt is wanted as it was written, too. */
	readonly readsRaw: boolean;
	/** Before the id of an answer. */
	readonly idPrefix: string;
	/** What an answer and an event of it call themselves. */
	readonly object: { readonly whole: string; readonly chunk: string };
	read(body: JsonBody, model: Model): Input;
	/** Requests with the same one share a replica's prefix cache; asked for where there are several replicas. */
	affinityOf(input: Input): string | undefined;
	whole(model: Model, context: CallContext, input: Input): UnaryCall<Reply>;
	stream(model: Model, context: CallContext, input: Input): StreamCall<Chunk>;
}

/** An endpoint whose answers are text, generated to a prompt and priced in tokens. */
export function generatedText<
	Input extends TextInput,
	Reply extends TextReply,
	Chunk extends OutputChunk & WrittenChunk,
>(own: TextEndpoint<Input, Reply, Chunk>): InferenceEndpoint<JsonBody, Input, Reply, Chunk> {
	const { name, promptField, object } = own;
	const callOf = (exchange: Exchange<Input>, signal: AbortSignal) =>
		callContext(exchange, signal, exchange.model.upstreams.length > 1 ? own.affinityOf(exchange.input) : undefined);
	const answerId = ({ context }: Exchange<Input>) => `${own.idPrefix}-${context.hex}`;
	return {
		name,
		kind: "chat",
		mode: name,
		promptField,
		readBody: (connection, bytesMax, reads, takes, bytes) =>
			readJson(connection, bytesMax, reads, takes, bytes, own.readsRaw ? promptField : undefined),
		read: own.read,
		// In one literal: an object that is spread grows step by step.
		upperBound: (input, model) => ({
			promptTokens: promptTokensMax(input.measure, model),
			cachedTokens: 0,
			completionTokens: input.maxOutputTokens * input.choices,
			requests: 1,
			images: 0,
			audioSeconds: 0,
			searches: 0,
		}),
		whole: {
			send: (upstreams, exchange, signal) =>
				upstreams.call(exchange.model, own.whole(exchange.model, callOf(exchange, signal), exchange.input)),
			over: ({ prompt }) => prompt.letGo(),
			bill: ({ input, admitted }, reply) =>
				billOf(admitted.request, input.measure, reply.usage, reply.outputBytes, reply.outputEvents),
			write: (exchange, reply, bill) => ({
				id: answerId(exchange),
				object: object.whole,
				created: exchange.createdS,
				model: exchange.model.id,
				choices: reply.choices,
				usage: usageRecord(bill),
				system_fingerprint: null,
				...reply.about,
				...reply.sources,
			}),
		},
		streamed: {
			open: (upstreams, exchange, signal) =>
				upstreams.open(exchange.model, own.stream(exchange.model, callOf(exchange, signal), exchange.input)),
			relay(exchange) {
				const { createdS, model, input } = exchange;
				const head = { id: answerId(exchange), createdS, model: model.id, object: object.chunk };
				return tokenRelay(exchange, input.measure, createChatEvents<Chunk>(head, input.includeUsage));
			},
		},
	};
}
