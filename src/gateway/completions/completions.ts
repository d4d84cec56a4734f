import { NO_QUANTITIES } from "../../admission/price.ts";
import { promptTokensMax } from "../../admission/prompt-bound.ts";
import type { Model } from "../../catalog/model.ts";
import type { CompletionChunk } from "../../upstream/completions/completion-answer.ts";
import type { CompletionCall } from "../../upstream/completions/completion-call.ts";
import { completionStream, completionWhole } from "../../upstream/completions/completion-call.ts";
import { answering } from "../answering.ts";
import { billOf, sizeOf } from "../bill.ts";
import { readJsonObject } from "../body.ts";
import type { ChatDeps } from "../chat/chat.ts";
import { modelOf } from "../chat/chat-request.ts";
import type { Connection } from "../exchange.ts";
import { answerHeaders } from "../headers.ts";
import { meteredCall } from "../metered-call.ts";
import { modelFor } from "../model-for.ts";
import type { StreamedExchange } from "../relay.ts";
import { streamAnswer, tokenRelay } from "../relay.ts";
import { createChatEvents } from "../stream-events.ts";
import { usageRecord } from "../usage-record.ts";
import type { CompletionRequest } from "./completions-request.ts";
import { readCompletionRequest } from "./completions-request.ts";

/** An admitted completion. */
interface CompletionExchange extends StreamedExchange {
	readonly ask: CompletionRequest;
	readonly answerId: string;
	readonly createdS: number;
}

/** POST /v1/completions: authenticate → read → admit → send → relay → settle. */
export function completions(deps: ChatDeps, connection: Connection): Promise<Response> {
	return answering(deps, connection, { endpoint: "completions", promptField: "prompt" }, async (begun) => {
		const { uuid, requestId, endpoint, hex, startedMs, createdS, key } = begun;
		const body = await readJsonObject(connection.request, deps.limits().bodyBytesMax);
		begun.asked = modelOf(body);
		const model = modelFor(deps.catalog.current(), begun.asked, "completions");
		const ask = readCompletionRequest(body, model);
		const choices = ask.shape.prompts * ask.shape.n;
		const most = {
			...NO_QUANTITIES,
			requests: 1,
			prompt: promptTokensMax(ask.measure, model),
			completion: ask.outputTokensMax * choices,
		};
		const decision = deps.admission.admit({ id: uuid, key, model, endpoint, streamed: ask.stream, most, choices });
		const admitted = decision instanceof Promise ? await decision : decision;
		begun.admitted = true;
		const answerId = `cmpl-${hex}`;
		const exchange = { connection, requestId, answerId, startedMs, createdS, model, ask, admitted };
		return ask.stream ? streamCompletion(deps, exchange) : answerCompletion(deps, exchange);
	});
}

function streamCompletion(deps: ChatDeps, exchange: CompletionExchange): Promise<Response> {
	const { ask, answerId, createdS, model } = exchange;
	const head = { id: answerId, createdS, model: model.id, object: "text_completion" };
	return streamAnswer<CompletionChunk>(deps, exchange, {
		open: (signal) => deps.upstreams.open(model, completionStream(model, callOf(exchange, signal))),
		...tokenRelay(exchange, ask.measure, createChatEvents<CompletionChunk>(head, ask.includeUsage)),
	});
}

async function answerCompletion(deps: ChatDeps, exchange: CompletionExchange): Promise<Response> {
	const { ask, model, admitted } = exchange;
	const { reply, bill } = await meteredCall(
		deps,
		exchange,
		(signal) => deps.upstreams.call(model, completionWhole(model, callOf(exchange, signal))),
		(reply) => billOf(model, ask.measure, reply.usage, sizeOf(reply), admitted.request.most.completion),
	);
	const answer = {
		id: exchange.answerId,
		object: "text_completion",
		created: exchange.createdS,
		model: model.id,
		choices: reply.choices,
		usage: usageRecord(bill.usage, bill.cost),
		system_fingerprint: null,
	};
	return new Response(JSON.stringify(answer), { headers: answerHeaders(exchange, "application/json") });
}

const PREFIX_CHARS = 1_024;

/** Requests that begin alike share a replica's prefix cache. */
function affinityOf(model: Model, { prompt }: CompletionRequest): string | undefined {
	if (model.upstreams.length < 2) return undefined;
	const start = typeof prompt === "string" ? prompt : JSON.stringify(Array.isArray(prompt) ? prompt.slice(0, 256) : "");
	return Bun.hash(start.slice(0, PREFIX_CHARS)).toString(36);
}

/** The upstream's part of an exchange. */
function callOf({ model, ask, requestId }: CompletionExchange, signal: AbortSignal): CompletionCall {
	const { fields, prompt, shape, outputTokensMax } = ask;
	return { fields, prompt, shape, outputLimit: outputTokensMax, signal, affinity: affinityOf(model, ask), requestId };
}
