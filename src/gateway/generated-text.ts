import type { TObject } from "@sinclair/typebox";
import type { AdmissionRequest } from "../admission/admission.ts";
import { priceOfTokens } from "../admission/price.ts";
import { type PromptMeasure, promptTokensMax } from "../admission/prompt-bound.ts";
import type { Fault } from "../base/fault.ts";
import type { Language } from "../base/language.ts";
import type { ChatMode, Model } from "../catalog/model.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import type { CallContext } from "../upstream/call/attempt.ts";
import type { StreamCall } from "../upstream/call/stream.ts";
import type { OutputChunk } from "../upstream/call/stream-wire.ts";
import type { UnaryCall } from "../upstream/call/unary.ts";
import type { AnswerFields, ChatChunk, TextReply } from "../upstream/chat/chat-answer.ts";
import type { Prompt } from "../upstream/prompt.ts";
import type { ReportedUsage } from "../upstream/usage.ts";
import { type Bill, type OutputSize, priceTokens, type UsageRecord, usageRecord } from "./bill/bill.ts";
import { type JsonBody, jsonReader } from "./body/json-body.ts";
import { errorBody } from "./error-body.ts";
import type { ServedRequest } from "./serve/context.ts";
import type { EndpointInput, InferenceEndpoint, Relay } from "./serve/endpoint.ts";

interface TextInput extends EndpointInput {
	readonly prompt: Prompt;
	readonly choices: number;
	readonly measure: PromptMeasure;
	readonly maxOutputTokens: number;
	readonly includeUsage: boolean;
}

/** The parts in which chats and text completions differ. */
interface TextEndpoint<Input extends TextInput, Reply extends TextReply<unknown>, Chunk>
	extends Pick<InferenceEndpoint<JsonBody, Input, Reply, Chunk>, "promptField" | "read"> {
	readonly name: ChatMode;
	readonly schema: TObject;
	readonly readsRaw: boolean;
	readonly idPrefix: string;
	readonly object: { readonly whole: string; readonly chunk: string };
	whole(model: Model, context: CallContext, input: Input): UnaryCall<Reply>;
	stream(model: Model, context: CallContext, input: Input): StreamCall<Chunk>;
}

export function generatedText<
	Input extends TextInput,
	Reply extends TextReply<unknown>,
	Chunk extends OutputChunk & WrittenChunk,
>(own: TextEndpoint<Input, Reply, Chunk>): InferenceEndpoint<JsonBody, Input, Reply, Chunk> {
	const { name, promptField, object } = own;
	const answerId = ({ context }: ServedRequest<Input>) => `${own.idPrefix}-${context.hex}`;
	return {
		name,
		kind: "chat",
		mode: name,
		promptField,
		readBody: jsonReader(own.schema, own.readsRaw ? promptField : undefined),
		read: own.read,
		promptOf: ({ prompt }) => prompt.json,
		// An object literal, because an object built by spreads is reallocated as it grows.
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
			call: ({ model, input }, context) => own.whole(model, context, input),
			over: ({ prompt }) => prompt.letGo(),
			bill: ({ input, admitted }, reply) =>
				priceTokens(admitted.request, input.measure, reply.usage, reply.outputBytes, 0),
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
			call: ({ model, input }, context) => own.stream(model, context, input),
			relay(exchange) {
				const { createdS, model, input } = exchange;
				const head = { id: answerId(exchange), createdS, model: model.id, object: object.chunk };
				const events = new ChatEvents<Chunk>(head, input.includeUsage);
				return new TokenRelay(exchange.admitted.request, input.measure, events);
			},
		},
	};
}

/** Writes a stream's events and computes its charge by tokens. A class, because it allocates less than closures. */
class TokenRelay<Chunk extends WrittenChunk> implements Relay<Chunk> {
	readonly #request: AdmissionRequest;
	readonly #measure: PromptMeasure;
	readonly #events: ChatEvents<Chunk>;

	constructor(request: AdmissionRequest, measure: PromptMeasure, events: ChatEvents<Chunk>) {
		this.#request = request;
		this.#measure = measure;
		this.#events = events;
	}

	chunks(chunks: readonly Chunk[]): string {
		return this.#events.chunks(chunks);
	}

	end(bill: Bill): string {
		return this.#events.end(usageRecord(bill));
	}

	fail(fault: Fault, bill: Bill, language: Language | undefined): string {
		return this.#events.fail(fault, usageRecord(bill), language);
	}

	bill(usage: ReportedUsage | undefined, output: OutputSize): Bill {
		const { bytes, chunks, tokensLikely, isBroken } = output;
		const likely = isBroken ? Math.min(chunks, tokensLikely ?? chunks) : tokensLikely;
		return priceTokens(this.#request, this.#measure, usage, bytes, chunks, likely);
	}

	/** `output` is in bytes if tokens are not counted: an upper bound, since a token has at least one byte. */
	costAt(now: Bill, output: number): NanoUsd {
		return priceOfTokens(this.#request.model.rateCard, now.promptTokens, now.cachedTokens, output);
	}
}

type WrittenChunk = Pick<ChatChunk, "about" | "sources" | "choicesText"> & { readonly choices: readonly unknown[] };

export const KEEP_ALIVE_COMMENT = ": \n\n";
const DONE = "data: [DONE]\n\n";
/** An empty choice for each value of the events' field `object`. */
const EMPTY_CHOICES: Readonly<Record<string, string>> = {
	"chat.completion.chunk": '[{"index":0,"delta":{},"finish_reason":null}]',
	text_completion: '[{"text":"","index":0,"logprobs":null,"finish_reason":null}]',
};

/**
 * Writes a text answer as server-sent events: `data: <json>` and `data: [DONE]`. The last event has the usage. A client
 * that requested usage gets `choices: []` in it, and `usage: null` in earlier events. For other clients the last event
 * has an empty choice, since many read `choices[0]` of every event. A class, because nine closures per open stream
 * would cost more.
 */
export class ChatEvents<Chunk extends WrittenChunk = ChatChunk> {
	readonly #prefix: string;
	readonly #usageChoices: string;
	readonly #suffix: string;
	/** The last event's members other than its choices, with their JSON; most events repeat them, so it is reused. */
	#about: AnswerFields | undefined;
	#aboutText = "";
	#tail: string;
	#sources: AnswerFields | undefined;

	constructor(head: { id: string; createdS: number; model: string; object: string }, includeUsage: boolean) {
		this.#prefix = `data: {"id":${JSON.stringify(head.id)},"object":"${head.object}","created":${head.createdS},"model":${JSON.stringify(head.model)},"choices":`;
		this.#usageChoices = includeUsage ? "[]" : (EMPTY_CHOICES[head.object] ?? "[]");
		this.#suffix = includeUsage ? ',"usage":null}\n\n' : "}\n\n";
		this.#tail = this.#suffix;
	}

	/** The events for these chunks as text; empty if they have no choices. */
	chunks(chunks: readonly Chunk[]): string {
		let text = "";
		for (const chunk of chunks) {
			this.#note(chunk);
			if (chunk.choicesText !== undefined) text += this.#prefix + chunk.choicesText + this.#tail;
			else if (chunk.choices.length > 0) text += this.#prefix + JSON.stringify(chunk.choices) + this.#tail;
		}
		return text;
	}

	end(usage: UsageRecord): string {
		const besides = this.#aboutText + membersText(this.#sources);
		return `${this.#prefix}${this.#usageChoices}${besides},"usage":${JSON.stringify(usage)}}\n\n${DONE}`;
	}

	/** The error, the usage, and `[DONE]`: clients that read on after an error still get the charge. */
	fail(fault: Fault, usage: UsageRecord, language?: Language): string {
		return `data: ${JSON.stringify(errorBody(fault, language))}\n\n${this.end(usage)}`;
	}

	#note(chunk: Chunk): void {
		this.#sources = chunk.sources ?? this.#sources;
		if (chunk.about === undefined || chunk.about === this.#about) return;
		this.#about = chunk.about;
		this.#aboutText = membersText(this.#about);
		this.#tail = this.#aboutText + this.#suffix;
	}
}

/** Members of an object as JSON, each followed by a comma. */
function membersText(fields: AnswerFields | undefined): string {
	if (fields === undefined) return "";
	const text = JSON.stringify(fields);
	return text === "{}" ? "" : `,${text.slice(1, -1)}`;
}
