import { NO_QUANTITIES } from "../../admission/price.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import { rerankCall } from "../../upstream/rerank.ts";
import { answering } from "../answering.ts";
import { readJsonObject } from "../body.ts";
import type { ChatDeps } from "../chat/chat.ts";
import { modelOf } from "../chat/chat-request.ts";
import type { Connection } from "../exchange.ts";
import { answerHeaders } from "../headers.ts";
import { meteredCall } from "../metered-call.ts";
import { assertKind, modelOfKind } from "../model-for.ts";
import { unitBill } from "../unit-bill.ts";
import { readRerankRequest } from "./rerank-request.ts";

/**
 * POST /v1/rerank: authenticate → read → admit → send → settle. One shape in front of all servers, Cohere's and Jina's
 * at once: `meta.billed_units` for readers of the one, `usage` for readers of the other.
 */
export function rerank(deps: ChatDeps, connection: Connection): Promise<Response> {
	return answering(deps, connection, { endpoint: "rerank", promptField: "documents" }, async (begun) => {
		const { uuid, requestId, endpoint, hex, startedMs, key } = begun;
		assertKind(deps.catalog.current(), "rerank");
		const body = await readJsonObject(connection.request, deps.limits().bodyBytesMax);
		begun.asked = modelOf(body);
		const model = modelOfKind(deps.catalog.current(), begun.asked, "rerank");
		const ask = readRerankRequest(body, model);
		const { documents, searches } = ask;
		const most = { ...NO_QUANTITIES, requests: 1, searches, prompt: ask.tokensMax };
		const decision = deps.admission.admit({ id: uuid, key, model, endpoint, streamed: false, most, choices: 1 });
		const admitted = decision instanceof Promise ? await decision : decision;
		begun.admitted = true;
		// Where tokens cost nothing nobody has to count them: searches are counted here.
		const tokensAreFree = model.rateCard.input === 0 && model.rateCard.cachedInput === 0;
		const { reply, bill } = await meteredCall(
			deps,
			{ connection, startedMs, model, admitted },
			(signal) => deps.upstreams.call(model, rerankCall({ ...ask, signal, requestId })),
			({ tokens }) =>
				unitBill(
					model,
					{ ...NO_QUANTITIES, requests: 1, searches, prompt: tokens ?? (tokensAreFree ? 0 : ask.tokensEstimate) },
					tokens !== undefined || tokensAreFree,
				),
		);
		const tokens = bill.usage.promptTokens;
		const answer = {
			id: `rerank-${hex}`,
			object: "rerank",
			model: model.id,
			results: reply.results.slice(0, ask.topN).map(({ index, score }) => ({
				index,
				relevance_score: score,
				...(ask.returnDocuments ? { document: { text: documents[index] } } : {}),
			})),
			usage: {
				prompt_tokens: tokens,
				total_tokens: tokens,
				search_units: searches,
				cost: jsonUsd(bill.cost),
			},
			meta: { billed_units: { search_units: searches } },
		};
		return new Response(JSON.stringify(answer), { headers: answerHeaders({ requestId, ask }, "application/json") });
	});
}
