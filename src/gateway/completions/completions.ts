import { NO_QUANTITIES } from "../../admission/price.ts";
import { promptTokensMax } from "../../admission/prompt-bound.ts";
import type { Model } from "../../catalog/model.ts";
import type { CompletionChunk, CompletionReply } from "../../upstream/completions/completion-answer.ts";
import type { CompletionCall } from "../../upstream/completions/completion-call.ts";
import { completionStream, completionWhole } from "../../upstream/completions/completion-call.ts";
import { billOf, boundsOf, sizeOf } from "../bill/bill.ts";
import { usageRecord } from "../bill/usage-record.ts";
import type { JsonBody } from "../body/json-body.ts";
import { readJson } from "../body/json-body.ts";
import { callContext, type Exchange } from "../serve/context.ts";
import type { InferenceEndpoint } from "../serve/endpoint.ts";
import { createChatEvents } from "../stream-events.ts";
import { tokenRelay } from "../token-relay.ts";
import type { CompletionInput } from "./completions-request.ts";
import { readCompletionRequest } from "./completions-request.ts";

/** POST /v1/completions. */
export const completions: InferenceEndpoint<JsonBody, CompletionInput, CompletionReply, CompletionChunk> = {
	name: "completions",
	kind: "chat",
	mode: "completions",
	promptField: "prompt",
	readBody: readJson,
	read: ({ value }, model) => readCompletionRequest(value, model),
	upperBound: (input, model) => ({
		...NO_QUANTITIES,
		requests: 1,
		prompt: promptTokensMax(input.measure, model),
		completion: input.outputTokensMax * input.choices,
	}),
	whole: {
		send: (upstreams, exchange, signal) =>
			upstreams.call(exchange.model, completionWhole(exchange.model, callOf(exchange, signal))),
		bill: ({ model, input, admitted }, reply) =>
			billOf(model, input.measure, reply.usage, sizeOf(reply), boundsOf(admitted.request)),
		write: (exchange, reply, bill) => ({
			id: answerId(exchange),
			object: "text_completion",
			created: exchange.createdS,
			model: exchange.model.id,
			choices: reply.choices,
			usage: usageRecord(bill),
			system_fingerprint: null,
			...reply.about,
		}),
	},
	streamed: {
		open: (upstreams, exchange, signal) =>
			upstreams.open(exchange.model, completionStream(exchange.model, callOf(exchange, signal))),
		relay(exchange) {
			const { createdS, model, input } = exchange;
			const head = { id: answerId(exchange), createdS, model: model.id, object: "text_completion" };
			return tokenRelay(exchange, input.measure, createChatEvents<CompletionChunk>(head, input.includeUsage));
		},
	},
};

function answerId({ context }: Exchange): string {
	return `cmpl-${context.hex}`;
}

const PREFIX_CHARS = 1_024;

/** Requests that begin alike share a replica's prefix cache. */
function affinityOf(model: Model, { prompt }: CompletionInput): string | undefined {
	if (model.upstreams.length < 2) return undefined;
	const start = typeof prompt === "string" ? prompt : JSON.stringify(Array.isArray(prompt) ? prompt.slice(0, 256) : "");
	return Bun.hash(start.slice(0, PREFIX_CHARS)).toString(36);
}

/** The upstream's part of an exchange. */
function callOf(exchange: Exchange<CompletionInput>, signal: AbortSignal): CompletionCall {
	const { model, input } = exchange;
	const { fields, prompt, shape, outputTokensMax } = input;
	const context = callContext(exchange, signal, affinityOf(model, input));
	return { ...context, fields, prompt, shape, outputLimit: outputTokensMax };
}
