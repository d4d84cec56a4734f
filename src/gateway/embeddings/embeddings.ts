import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { NO_QUANTITIES } from "../../admission/price.ts";
import { measureText, promptTokensEstimate, promptTokensMax } from "../../admission/prompt-bound.ts";
import { Fault } from "../../base/fault.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import { jsonUsd } from "../../money/nano-usd.ts";
import { DIALECTS } from "../../upstream/dialects.ts";
import { type EmbeddingInput, type EmbeddingReply, embeddingCall } from "../../upstream/embeddings.ts";
import { limitedPromptUsage, unitBill } from "../bill/bill.ts";
import { type JsonBody, jsonReader } from "../body/json-body.ts";
import { TokenIds } from "../completions/completions.ts";
import { assertBody, nullish, requestBody, supportedFields } from "../request-fields.ts";
import type { InferenceEndpoint } from "../serve/endpoint.ts";

const INPUTS_MAX = 2_048;
const DIMENSIONS_MAX = 65_536;

export const EmbeddingRequestBody = requestBody({
	input: Type.Union([
		Type.String({ minLength: 1 }),
		Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: INPUTS_MAX }),
		TokenIds,
		Type.Array(TokenIds, { minItems: 1, maxItems: INPUTS_MAX }),
	]),
	encoding_format: nullish(Type.Union([Type.Literal("float"), Type.Literal("base64")])),
	dimensions: nullish(Type.Integer({ minimum: 1, maximum: DIMENSIONS_MAX })),
	user: nullish(Type.String()),
});

const check = TypeCompiler.Compile(EmbeddingRequestBody);

export type EmbeddingsInput = ReturnType<typeof readEmbeddingRequest>;

export function readEmbeddingRequest(body: Readonly<Record<string, unknown>>, model: Model) {
	assertBody(check, body);
	const { input } = body;
	const inputs = (
		typeof input === "string" || typeof input[0] === "number" ? [input] : input
	) as readonly EmbeddingInput[];
	const withTokens = inputs.some((one) => typeof one !== "string");
	if (withTokens && !model.upstreams.every(({ dialect }) => DIALECTS[dialect].embeddings.tokens))
		throw new Fault("invalid_request", "This model does not accept token IDs. Send `input` as text.", {
			param: "input",
		});
	let tokensMax = 0;
	let tokensEstimate = 0;
	for (const one of inputs) {
		const size = typeof one === "string" ? measureText(one, model) : { textBytes: 0, tokens: one.length };
		const measure = { ...size, messages: 1, images: 0, hasTools: false };
		tokensMax += promptTokensMax(measure, model);
		tokensEstimate += promptTokensEstimate(measure, model);
	}
	const { fields, ignored } = supportedFields(body, model, OWN_FIELDS.embeddings);
	return {
		inputs,
		base64: body.encoding_format === "base64",
		fields,
		ignored,
		promptTokensMax: tokensMax,
		promptTokensEstimate: tokensEstimate,
	};
}

export const embeddings: InferenceEndpoint<JsonBody, EmbeddingsInput, EmbeddingReply, never> = {
	name: "embeddings",
	kind: "embedding",
	promptField: "input",
	readBody: jsonReader(EmbeddingRequestBody),
	read: ({ value }, model) => readEmbeddingRequest(value, model),
	upperBound: (input) => ({ ...NO_QUANTITIES, requests: 1, promptTokens: input.promptTokensMax }),
	whole: {
		call: ({ input }, context) => embeddingCall(input, context),
		bill({ model, input }, { usage }) {
			const { tokens, isBelieved } = limitedPromptUsage(usage, input.promptTokensMax, input.promptTokensEstimate);
			return unitBill(model, { ...NO_QUANTITIES, requests: 1, ...tokens }, isBelieved);
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
