import { NO_QUANTITIES } from "../../admission/price.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import type { EmbeddingReply } from "../../upstream/embeddings.ts";
import { embeddingCall } from "../../upstream/embeddings.ts";
import { countedWithin, unitBill } from "../bill/unit-bill.ts";
import type { JsonBody } from "../body/json-body.ts";
import { readJson } from "../body/json-body.ts";
import { callContext } from "../serve/context.ts";
import type { InferenceEndpoint } from "../serve/endpoint.ts";
import type { EmbeddingsInput } from "./embeddings-request.ts";
import { readEmbeddingRequest } from "./embeddings-request.ts";

/** POST /v1/embeddings. */
export const embeddings: InferenceEndpoint<JsonBody, EmbeddingsInput, EmbeddingReply, never> = {
	name: "embeddings",
	kind: "embedding",
	promptField: "input",
	readBody: readJson,
	read: ({ value }, model) => readEmbeddingRequest(value, model),
	upperBound: (input) => ({ ...NO_QUANTITIES, requests: 1, promptTokens: input.promptTokensMax }),
	whole: {
		send: (upstreams, exchange, signal) =>
			upstreams.call(exchange.model, embeddingCall(exchange.input, callContext(exchange, signal))),
		bill({ model, input }, { promptTokens }) {
			const counted = countedWithin(promptTokens, input.promptTokensMax);
			const used = { ...NO_QUANTITIES, requests: 1, promptTokens: counted.tokens ?? input.promptTokensEstimate };
			return unitBill(model, used, counted.isBelieved);
		},
		write({ model }, reply, { promptTokens: tokens, cost, basis }) {
			return {
				object: "list",
				data: reply.vectors.map((embedding, index) => ({ object: "embedding", index, embedding })),
				model: model.id,
				usage: { prompt_tokens: tokens, total_tokens: tokens, cost: jsonUsd(cost), basis },
			};
		},
	},
};
