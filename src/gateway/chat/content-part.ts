import { Fault } from "../../base/fault.ts";
import type { Model } from "../../catalog/model.ts";

export type ContentPart = Readonly<Record<string, unknown>> & { readonly type: string };

/**
 * Reduces a part to the fields of its type. Servers know more types, some with URLs (`video_url`, `audio_url`) that
 * they fetch from inside the operator's network, and some look for those in parts of any type. `param` names the part
 * in Fault invalid_request.
 */
export function rebuildPart(part: ContentPart | undefined, param: string, model: Model): ContentPart {
	switch (part?.type) {
		case "text":
			return { type: "text", text: textOf(part.text, param) };
		case "refusal":
			return { type: "refusal", refusal: textOf(part.refusal, param) };
		case "image_url":
			return { type: "image_url", image_url: imageOf(part.image_url, param, model) };
		case "input_audio":
			return { type: "input_audio", input_audio: audioOf(part.input_audio, param, model) };
		default:
			throw new Fault("invalid_request", "Parts of this type are not supported.", { param: `${param}.type` });
	}
}

function textOf(value: unknown, param: string): string {
	if (typeof value !== "string") throw new Fault("invalid_request", "A text part needs `text`.", { param });
	return value;
}

function imageOf(value: unknown, param: string, model: Model): Readonly<Record<string, unknown>> {
	const { url, detail } = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
	if (typeof url !== "string") throw new Fault("invalid_request", "An image part needs `image_url.url`.", { param });
	if (!model.inputModalities.has("image") || model.imageUrls === "reject")
		throw new Fault("invalid_request", "The model `{id}` does not take images.", { values: { id: model.id }, param });
	// Servers would fetch any other URL themselves.
	if (!url.startsWith("data:") && !(model.imageUrls === "forward" && /^https?:\/\//i.test(url)))
		throw new Fault("invalid_request", "Images must be sent as `data:` URLs to this model.", { param });
	return typeof detail === "string" ? { url, detail } : { url };
}

function audioOf(value: unknown, param: string, model: Model): Readonly<Record<string, unknown>> {
	const { data, format } = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
	if (typeof data !== "string" || typeof format !== "string")
		throw new Fault("invalid_request", "An audio part needs `input_audio.data` and `input_audio.format`.", { param });
	if (!model.inputModalities.has("audio"))
		throw new Fault("invalid_request", `The model \`${model.id}\` does not take audio.`, { param });
	return { data, format };
}
