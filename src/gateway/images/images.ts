import { NO_QUANTITIES } from "../../admission/price.ts";
import type { Model } from "../../catalog/model.ts";
import { jsonUsd } from "../../money/json-usd.ts";
import type { ImageReply } from "../../upstream/images.ts";
import { imageCall } from "../../upstream/images.ts";
import type { Bill } from "../bill/bill.ts";
import { countedWithin, unitBill } from "../bill/unit-bill.ts";
import type { JsonBody } from "../body/json-body.ts";
import { readJson } from "../body/json-body.ts";
import { callContext } from "../serve/context.ts";
import type { InferenceEndpoint } from "../serve/endpoint.ts";
import type { ImagesInput } from "./images-request.ts";
import { readImageRequest } from "./images-request.ts";

/** POST /v1/images/generations. */
export const images: InferenceEndpoint<JsonBody, ImagesInput, ImageReply, never> = {
	name: "image",
	kind: "image",
	promptField: "prompt",
	readBody: readJson,
	read: ({ value }, model) => readImageRequest(value, model),
	upperBound: (input, model) => ({
		...NO_QUANTITIES,
		requests: 1,
		images: input.n,
		promptTokens: input.promptTokensMax,
		// If output tokens have a price too, an image has at most a context's worth of them.
		completionTokens: model.rateCard.output > 0 ? input.n * model.contextLength : 0,
	}),
	whole: {
		send: (upstreams, exchange, signal) =>
			upstreams.call(exchange.model, imageCall(exchange.input, callContext(exchange, signal))),
		bill: ({ model, input }, reply) => billOfImages(model, input, reply),
		write: ({ createdS }, reply, bill) => ({ created: createdS, data: reply.images, usage: usageOf(bill) }),
	},
};

/** Images are counted here; tokens matter only if they have a price. */
function billOfImages(model: Model, input: ImagesInput, { images: made, usage }: ImageReply): Bill {
	const { input: inputRate, cachedInput, output } = model.rateCard;
	const tokensAreFree = inputRate === 0 && cachedInput === 0 && output === 0;
	const prompt = countedWithin(usage?.promptTokens, input.promptTokensMax);
	const completion = countedWithin(usage?.completionTokens, input.n * model.contextLength);
	const used = {
		...NO_QUANTITIES,
		requests: 1,
		images: made.length,
		promptTokens: prompt.tokens ?? (tokensAreFree ? 0 : input.promptTokensEstimate),
		completionTokens: completion.tokens ?? 0,
	};
	return unitBill(model, used, (prompt.isBelieved && completion.isBelieved) || tokensAreFree);
}

function usageOf({ promptTokens, completionTokens, cost, basis, units }: Bill) {
	return {
		input_tokens: promptTokens,
		output_tokens: completionTokens,
		total_tokens: promptTokens + completionTokens,
		input_tokens_details: { text_tokens: promptTokens, image_tokens: 0 },
		images: units,
		cost: jsonUsd(cost),
		basis,
	};
}
