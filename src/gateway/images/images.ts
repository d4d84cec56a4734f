import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { NO_QUANTITIES } from "../../admission/price.ts";
import { measureText, promptTokensEstimate, promptTokensMax } from "../../admission/prompt-bound.ts";
import { Fault } from "../../base/fault.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import { jsonUsd } from "../../money/nano-usd.ts";
import { type ImageReply, imageCall } from "../../upstream/images.ts";
import { limitedCount, limitedPromptUsage, unitBill } from "../bill/bill.ts";
import { type JsonBody, jsonReader } from "../body/json-body.ts";
import { assertBody, nullish, requestBody, shortText, supportedFields, unsupportedLimits } from "../request-fields.ts";
import type { InferenceEndpoint } from "../serve/endpoint.ts";

export const ImageRequestBody = requestBody({
	prompt: Type.String({ minLength: 1, maxLength: 32_000 }),
	n: nullish(Type.Integer({ minimum: 1, maximum: 10 })),
	size: shortText(32),
	quality: shortText(32),
	style: shortText(64),
	background: shortText(32),
	moderation: shortText(32),
	output_format: shortText(16),
	output_compression: nullish(Type.Integer({ minimum: 0, maximum: 100 })),
	response_format: nullish(Type.Union([Type.Literal("url"), Type.Literal("b64_json")])),
	stream: nullish(Type.Boolean()),
	user: nullish(Type.String()),
});

const check = TypeCompiler.Compile(ImageRequestBody);

export type ImagesInput = ReturnType<typeof readImageRequest>;

export function readImageRequest(body: Readonly<Record<string, unknown>>, model: Model) {
	assertBody(check, body);
	if (body.stream === true) {
		throw new Fault("unsupported_parameter", "Images cannot be streamed. Omit `stream` or set it to false.", {
			param: "stream",
		});
	}
	const n = model.parameters.has("n") ? (body.n ?? 1) : 1;
	const unsupported = [...unsupportedLimits(body, model), "partial_images"];
	const measure = { ...measureText(body.prompt, model), messages: 1, images: 0, hasTools: false };
	return {
		prompt: body.prompt,
		n,
		...supportedFields(body, model, OWN_FIELDS.image, unsupported),
		promptTokensMax: promptTokensMax(measure, model),
		promptTokensEstimate: promptTokensEstimate(measure, model),
	};
}

export const images: InferenceEndpoint<JsonBody, ImagesInput, ImageReply, never> = {
	name: "image",
	kind: "image",
	promptField: "prompt",
	readBody: jsonReader(ImageRequestBody),
	read: ({ value }, model) => readImageRequest(value, model),
	upperBound: (input, model) => ({
		...NO_QUANTITIES,
		requests: 1,
		images: input.n,
		promptTokens: input.promptTokensMax,
		// If output tokens have a price, each image is assumed to use at most a full context length of them.
		completionTokens: model.rateCard.output > 0 ? input.n * model.contextLength : 0,
	}),
	whole: {
		call: ({ input }, context) => imageCall(input, context),
		bill({ model, input }, { images: made, usage }) {
			// The gateway counts the images itself. The server's token counts are needed only if tokens have a price.
			const { input: inputRate, cachedInput, output } = model.rateCard;
			const tokensAreFree = inputRate === 0 && cachedInput === 0 && output === 0;
			const estimate = tokensAreFree ? 0 : input.promptTokensEstimate;
			const prompt = limitedPromptUsage(usage, input.promptTokensMax, estimate);
			const completion = limitedCount(usage, "completionTokens", input.n * model.contextLength);
			const used = {
				...NO_QUANTITIES,
				requests: 1,
				images: made.length,
				...prompt.tokens,
				completionTokens: completion.tokens ?? 0,
			};
			return unitBill(model, used, (prompt.isBelieved && completion.isBelieved) || tokensAreFree);
		},
		write: ({ createdS }, reply, { promptTokens, completionTokens, cost, basis, units }) => ({
			created: createdS,
			data: reply.images,
			usage: {
				input_tokens: promptTokens,
				output_tokens: completionTokens,
				total_tokens: promptTokens + completionTokens,
				input_tokens_details: { text_tokens: promptTokens, image_tokens: 0 },
				images: units,
				cost: jsonUsd(cost),
				basis,
			},
		}),
	},
};
