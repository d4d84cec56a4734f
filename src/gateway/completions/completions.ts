import { NO_QUANTITIES } from "../../admission/price.ts";
import { promptTokensMax } from "../../admission/prompt-bound.ts";
import type { Model } from "../../catalog/model.ts";
import type { CompletionChunk, CompletionReply } from "../../upstream/completions/completion-reader.ts";
import {
	COMPLETION_PATH,
	collectCompletion,
	completionWire,
	readCompletion,
} from "../../upstream/completions/completion-reader.ts";
import { completionRequestText } from "../../upstream/completions/completion-request.ts";
import { DIALECTS } from "../../upstream/dialects.ts";
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
		open: (signal) => openCompletion(deps, exchange, signal),
		...tokenRelay(exchange, ask.measure, createChatEvents<CompletionChunk>(head, ask.includeUsage)),
	});
}

async function answerCompletion(deps: ChatDeps, exchange: CompletionExchange): Promise<Response> {
	const { ask, model, admitted } = exchange;
	const send = countsOneChoice(model) && ask.shape.prompts * ask.shape.n > 1 ? collected : whole;
	const { reply, bill } = await meteredCall(
		deps,
		exchange,
		(signal) => send(deps, exchange, signal),
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

/** Whether some server of this model leaves choices out of a whole answer's usage; its streams do not. */
function countsOneChoice(model: Model): boolean {
	return model.upstreams.some(({ dialect }) => !DIALECTS[dialect].unaryUsageCoversChoices);
}

const PREFIX_CHARS = 1_024;

/** Requests that begin alike share a replica's prefix cache. */
function affinityOf(model: Model, { fields }: CompletionRequest): string | undefined {
	if (model.upstreams.length < 2) return undefined;
	const { prompt } = fields;
	const start = typeof prompt === "string" ? prompt : JSON.stringify(Array.isArray(prompt) ? prompt.slice(0, 256) : "");
	return Bun.hash(start.slice(0, PREFIX_CHARS)).toString(36);
}

type Sent = Promise<{ reply: CompletionReply; replica: string | undefined }>;

function whole({ upstreams }: ChatDeps, { model, ask, requestId }: CompletionExchange, signal: AbortSignal): Sent {
	const request = { fields: ask.fields, outputLimit: ask.outputTokensMax, n: ask.shape.n, stream: false };
	return upstreams.call<CompletionReply>(model, {
		signal,
		requestId,
		affinity: affinityOf(model, ask),
		run: (send, replica) =>
			send({
				path: COMPLETION_PATH,
				body: completionRequestText(replica, request),
				read: (parsed) => readCompletion(parsed, replica.dialect, ask.shape),
			}),
	});
}

async function collected(deps: ChatDeps, exchange: CompletionExchange, signal: AbortSignal): Sent {
	const stream = openCompletion(deps, exchange, signal);
	return { reply: await collectCompletion(stream), replica: stream.replica() };
}

function openCompletion({ upstreams }: ChatDeps, { model, ask, requestId }: CompletionExchange, signal: AbortSignal) {
	const request = { fields: ask.fields, outputLimit: ask.outputTokensMax, n: ask.shape.n, stream: true };
	return upstreams.open(model, {
		signal,
		requestId,
		affinity: affinityOf(model, ask),
		wire: completionWire(ask.shape),
		body: (replica) => completionRequestText(replica, request),
	});
}
