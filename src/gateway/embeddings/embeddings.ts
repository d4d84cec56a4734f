import { NO_QUANTITIES } from "../../admission/price.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import { embeddingCall } from "../../upstream/embeddings.ts";
import { answering } from "../answering.ts";
import { readJsonObject } from "../body.ts";
import type { ChatDeps } from "../chat/chat.ts";
import { modelOf } from "../chat/chat-request.ts";
import type { Connection } from "../exchange.ts";
import { answerHeaders } from "../headers.ts";
import { meteredCall } from "../metered-call.ts";
import { assertKind, modelOfKind } from "../model-for.ts";
import { unitBill } from "../unit-bill.ts";
import { readEmbeddingRequest } from "./embeddings-request.ts";

/** POST /v1/embeddings: authenticate → read → admit → send → settle. */
export function embeddings(deps: ChatDeps, connection: Connection): Promise<Response> {
	return answering(deps, connection, { endpoint: "embeddings", promptField: "input" }, async (begun) => {
		const { uuid, requestId, endpoint, startedMs, key } = begun;
		assertKind(deps.catalog.current(), "embedding");
		const body = await readJsonObject(connection.request, deps.limits().bodyBytesMax);
		begun.asked = modelOf(body);
		const model = modelOfKind(deps.catalog.current(), begun.asked, "embedding");
		const ask = readEmbeddingRequest(body, model);
		const most = { ...NO_QUANTITIES, requests: 1, prompt: ask.tokensMax };
		const decision = deps.admission.admit({ id: uuid, key, model, endpoint, streamed: false, most, choices: 1 });
		const admitted = decision instanceof Promise ? await decision : decision;
		begun.admitted = true;
		const { reply, bill } = await meteredCall(
			deps,
			{ connection, startedMs, model, admitted },
			(signal) => deps.upstreams.call(model, embeddingCall({ ...ask, signal, requestId })),
			({ promptTokens }) =>
				unitBill(
					model,
					{ ...NO_QUANTITIES, requests: 1, prompt: promptTokens ?? ask.tokensEstimate },
					promptTokens !== undefined,
				),
		);
		const tokens = bill.usage.promptTokens;
		const answer = {
			object: "list",
			data: reply.vectors.map((vector, index) => ({
				object: "embedding",
				index,
				embedding: ask.base64 ? base64Of(vector) : vector,
			})),
			model: model.id,
			usage: { prompt_tokens: tokens, total_tokens: tokens, cost: jsonUsd(bill.cost) },
		};
		return new Response(JSON.stringify(answer), {
			headers: answerHeaders({ requestId, ask }, "application/json"),
		});
	});
}

/** Little-endian float32, whatever the upstream sent. */
export function base64Of(vector: readonly number[]): string {
	const bytes = Buffer.allocUnsafe(vector.length * 4);
	for (let at = 0; at < vector.length; at += 1) bytes.writeFloatLE(vector[at] as number, at * 4);
	return bytes.toString("base64");
}
