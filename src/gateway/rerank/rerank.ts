import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { NO_QUANTITIES } from "../../admission/price.ts";
import { addTextMeasure, measureText, promptTokensEstimate, promptTokensMax } from "../../admission/prompt-bound.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import { jsonUsd } from "../../money/nano-usd.ts";
import { type RerankReply, rerankCall } from "../../upstream/rerank.ts";
import { limitedPromptUsage, unitBill } from "../bill/bill.ts";
import { type JsonBody, jsonReader } from "../body/json-body.ts";
import { assertBody, nullish, openObject, requestBody, supportedFields } from "../request-fields.ts";
import type { InferenceEndpoint } from "../serve/endpoint.ts";

const DOCUMENTS_MAX = 10_000;
/** Documents per charged search, as other rerank services count. */
const DOCUMENTS_A_SEARCH = 100;

const RerankDocument = Type.Union([Type.String(), openObject({ text: Type.String() })]);

export const RerankRequestBody = requestBody({
	query: Type.String({ minLength: 1 }),
	documents: Type.Array(RerankDocument, { minItems: 1, maxItems: DOCUMENTS_MAX }),
	top_n: nullish(Type.Integer({ minimum: 1 })),
	return_documents: nullish(Type.Boolean()),
});

const check = TypeCompiler.Compile(RerankRequestBody);

export type RerankInput = ReturnType<typeof readRerankRequest>;

export function readRerankRequest(body: Readonly<Record<string, unknown>>, model: Model) {
	assertBody(check, body);
	const documents = body.documents.map((document) => (typeof document === "string" ? document : document.text));
	const query = measureText(body.query, model);
	let tokensMax = 0;
	let tokensEstimate = 0;
	for (const document of documents) {
		// The model reads the query again with each document, so the query's tokens count once per document.
		const text = { ...query };
		addTextMeasure(text, document, model);
		const measure = { ...text, messages: 1, images: 0, hasTools: false };
		tokensMax += promptTokensMax(measure, model);
		tokensEstimate += promptTokensEstimate(measure, model);
	}
	return {
		query: body.query,
		documents,
		topN: Math.min(body.top_n ?? documents.length, documents.length),
		returnDocuments: body.return_documents === true,
		searches: Math.ceil(documents.length / DOCUMENTS_A_SEARCH),
		...supportedFields(body, model, OWN_FIELDS.rerank),
		promptTokensMax: tokensMax,
		promptTokensEstimate: tokensEstimate,
	};
}

/** POST /v1/rerank. The answer has the usage fields of Cohere (`meta.billed_units`) and of Jina (`usage`). */
export const rerank: InferenceEndpoint<JsonBody, RerankInput, RerankReply, never> = {
	name: "rerank",
	kind: "rerank",
	promptField: "documents",
	readBody: jsonReader(RerankRequestBody),
	read: ({ value }, model) => readRerankRequest(value, model),
	upperBound: ({ searches, promptTokensMax: tokensMax }) => ({
		...NO_QUANTITIES,
		requests: 1,
		searches,
		promptTokens: tokensMax,
	}),
	whole: {
		call: ({ input }, context) => rerankCall(input, context),
		bill({ model, input }, { usage }) {
			// The gateway counts the searches itself. The server's token counts are needed only if tokens have a price.
			const tokensAreFree = model.rateCard.input === 0 && model.rateCard.cachedInput === 0;
			const estimate = tokensAreFree ? 0 : input.promptTokensEstimate;
			const { tokens, isBelieved } = limitedPromptUsage(usage, input.promptTokensMax, estimate);
			const used = { ...NO_QUANTITIES, requests: 1, searches: input.searches, ...tokens };
			return unitBill(model, used, isBelieved || tokensAreFree);
		},
		write({ context, model, input }, reply, { promptTokens: tokens, cost, basis }) {
			const { documents, searches, topN, returnDocuments } = input;
			return {
				id: `rerank-${context.hex}`,
				object: "rerank",
				model: model.id,
				results: reply.results
					.slice(0, topN)
					.map(({ index, score }) => ({
						index,
						relevance_score: score,
						...(returnDocuments ? { document: { text: documents[index] } } : {}),
					})),
				usage: { prompt_tokens: tokens, total_tokens: tokens, search_units: searches, cost: jsonUsd(cost), basis },
				meta: { billed_units: { search_units: searches } },
			};
		},
	},
};
