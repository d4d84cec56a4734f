import { NO_QUANTITIES } from "../../admission/price.ts";
import { promptTokensMax } from "../../admission/prompt-bound.ts";
import type { ChatChunk, ChatReply } from "../../upstream/chat/chat-answer.ts";
import type { ChatCall } from "../../upstream/chat/chat-call.ts";
import { chatStream, chatWhole } from "../../upstream/chat/chat-call.ts";
import { billOf, boundsOf, sizeOf } from "../bill/bill.ts";
import { usageRecord } from "../bill/usage-record.ts";
import type { JsonBody } from "../body/json-body.ts";
import { readJson } from "../body/json-body.ts";
import { callContext, type Exchange } from "../serve/context.ts";
import type { InferenceEndpoint } from "../serve/endpoint.ts";
import { createChatEvents } from "../stream-events.ts";
import { tokenRelay } from "../token-relay.ts";
import { chatAffinity } from "./chat-affinity.ts";
import type { ChatInput } from "./chat-request.ts";
import { readChatRequest } from "./chat-request.ts";

/** POST /v1/chat/completions. */
export const chat: InferenceEndpoint<JsonBody, ChatInput, ChatReply, ChatChunk> = {
	name: "chat",
	kind: "chat",
	mode: "chat",
	promptField: "messages",
	readBody: readJson,
	read: ({ value, text }, model) => readChatRequest(value, model, text),
	upperBound: (input, model) => ({
		...NO_QUANTITIES,
		requests: 1,
		prompt: promptTokensMax(input.measure, model),
		completion: input.outputTokensMax * input.choices,
	}),
	whole: {
		send: (upstreams, exchange, signal) =>
			upstreams.call(exchange.model, chatWhole(exchange.model, callOf(exchange, signal))),
		bill: ({ model, input, admitted }, reply) =>
			billOf(model, input.measure, reply.usage, sizeOf(reply), boundsOf(admitted.request)),
		write: (exchange, reply, bill) => ({
			id: answerId(exchange),
			object: "chat.completion",
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
			upstreams.open(exchange.model, chatStream(exchange.model, callOf(exchange, signal))),
		relay(exchange) {
			const { createdS, model, input } = exchange;
			const head = { id: answerId(exchange), createdS, model: model.id };
			return tokenRelay(exchange, input.measure, createChatEvents<ChatChunk>(head, input.includeUsage));
		},
	},
};

function answerId({ context }: Exchange): string {
	return `chatcmpl-${context.hex}`;
}

/** The upstream's part of an exchange. */
function callOf(exchange: Exchange<ChatInput>, signal: AbortSignal): ChatCall {
	const { input, model } = exchange;
	return {
		...callContext(exchange, signal, model.upstreams.length > 1 ? chatAffinity(input.messages) : undefined),
		fields: input.fields,
		prompt: input.messages,
		rawPrompt: input.rawMessages,
		outputLimit: input.outputTokensMax,
		n: input.choices,
	};
}
