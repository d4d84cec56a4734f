import { NO_QUANTITIES } from "../../admission/price.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import type { RerankReply } from "../../upstream/rerank.ts";
import { rerankCall } from "../../upstream/rerank.ts";
import { countedWithin, unitBill } from "../bill/unit-bill.ts";
import type { JsonBody } from "../body/json-body.ts";
import { readJson } from "../body/json-body.ts";
import { callContext } from "../serve/context.ts";
import type { InferenceEndpoint } from "../serve/endpoint.ts";
import type { RerankInput } from "./rerank-request.ts";
import { readRerankRequest } from "./rerank-request.ts";

/**
 * POST /v1/rerank, in Cohere's and Jina's formats at once: `meta.billed_units` for the former, `usage` for the latter.
 */
export const rerank: InferenceEndpoint<JsonBody, RerankInput, RerankReply, never> = {
	name: "rerank",
	kind: "rerank",
	promptField: "documents",
	readBody: readJson,
	read: ({ value }, model) => readRerankRequest(value, model),
	upperBound: ({ searches, promptTokensMax: tokensMax }) => ({
		...NO_QUANTITIES,
		requests: 1,
		searches,
		promptTokens: tokensMax,
	}),
	whole: {
		send: (upstreams, exchange, signal) =>
			upstreams.call(exchange.model, rerankCall(exchange.input, callContext(exchange, signal))),
		bill({ model, input }, { tokens }) {
			// Searches are counted here; tokens matter only if they have a price.
			const tokensAreFree = model.rateCard.input === 0 && model.rateCard.cachedInput === 0;
			const counted = countedWithin(tokens, input.promptTokensMax);
			const promptTokens = counted.tokens ?? (tokensAreFree ? 0 : input.promptTokensEstimate);
			const used = { ...NO_QUANTITIES, requests: 1, searches: input.searches, promptTokens };
			return unitBill(model, used, counted.isBelieved || tokensAreFree);
		},
		write({ context, model, input }, reply, { promptTokens: tokens, cost, basis }) {
			const { documents, searches, topN, returnDocuments } = input;
			return {
				id: `rerank-${context.hex}`,
				object: "rerank",
				model: model.id,
				results: reply.results.slice(0, topN).map(({ index, score }) => ({
					index,
					relevance_score: score,
					...(returnDocuments ? { document: { text: documents[index] } } : {}),
				})),
				usage: {
					prompt_tokens: tokens,
					total_tokens: tokens,
					search_units: searches,
					cost: jsonUsd(cost),
					basis,
				},
				meta: { billed_units: { search_units: searches } },
			};
		},
	},
};
