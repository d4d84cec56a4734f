import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { measureText, promptTokensEstimate, promptTokensMax } from "../../admission/prompt-bound.ts";
import { Fault } from "../../base/fault.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import { assertBody, honouredFields, optional } from "../request-fields.ts";

/** Body of POST /v1/images/generations. Other fields are dropped unless the deployment lists them. */
export const ImageRequestBody = Type.Object(
	{
		model: Type.String({ minLength: 1, description: "ID of a connected image deployment." }),
		prompt: Type.String({ minLength: 1, maxLength: 32_000 }),
		n: optional(Type.Integer({ minimum: 1, maximum: 10 })),
		size: optional(Type.String({ maxLength: 32 })),
		quality: optional(Type.String({ maxLength: 32 })),
		style: optional(Type.String({ maxLength: 64 })),
		background: optional(Type.String({ maxLength: 32 })),
		moderation: optional(Type.String({ maxLength: 32 })),
		output_format: optional(Type.String({ maxLength: 16 })),
		output_compression: optional(Type.Integer({ minimum: 0, maximum: 100 })),
		response_format: optional(Type.Union([Type.Literal("url"), Type.Literal("b64_json")])),
		stream: optional(Type.Boolean()),
		user: optional(Type.String()),
	},
	{ additionalProperties: true },
);

const check = TypeCompiler.Compile(ImageRequestBody);

export type ImagesInput = ReturnType<typeof readImageRequest>;

/** Faults: invalid_request and unsupported_parameter, each naming the field. */
export function readImageRequest(body: Readonly<Record<string, unknown>>, model: Model) {
	assertBody(check, body);
	if (body.stream === true) {
		throw new Fault("unsupported_parameter", "Images are not streamed: leave `stream` out or set it to false.", {
			param: "stream",
		});
	}
	const n = model.parameters.has("n") ? (body.n ?? 1) : 1;
	const unsupported = [...(typeof body.n === "number" && body.n !== n ? ["n"] : []), "partial_images"];
	const measure = { ...measureText(body.prompt, model), messages: 1, images: 0, hasTools: false };
	return {
		prompt: body.prompt,
		n,
		...honouredFields(body, model, OWN_FIELDS.image, unsupported),
		/** Upper bound and estimate of the prompt's tokens. */
		promptTokensMax: promptTokensMax(measure, model),
		promptTokensEstimate: promptTokensEstimate(measure, model),
	};
}
