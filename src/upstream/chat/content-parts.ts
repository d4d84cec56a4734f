import { serverFailure } from "../call/failure.ts";
import { asArray, asObject, asText, type JsonObject } from "../wire-value.ts";

/** Texts of a message's `content`, which may be a string or a list of parts. */
export interface Content {
	text: string | undefined;
	reasoning: string | undefined;
	refusal: string | undefined;
	references: JsonObject[];
}

const PARTS_MAX = 10_000;

/** Reads text as content and thinking as reasoning. UpstreamFailure for other parts, which the answer would lack. */
export function readContentParts(content: unknown): Content {
	const read: Content = { text: undefined, reasoning: undefined, refusal: undefined, references: [] };
	const parts = asArray(content) ?? [content];
	if (parts.length > PARTS_MAX) throw serverFailure("a content in too many parts");
	for (const part of parts) readPart(part, read);
	return read;
}

function readPart(value: unknown, into: Content): void {
	if (typeof value === "string") {
		into.text = (into.text ?? "") + value;
		return;
	}
	const part = asObject(value);
	switch (part?.type) {
		case "text":
		case "output_text":
			into.text = (into.text ?? "") + textOf(part.text);
			return;
		case "thinking":
		case "reasoning":
			into.reasoning = (into.reasoning ?? "") + textOf(part.thinking ?? part.reasoning ?? part.text);
			return;
		case "refusal":
			into.refusal = (into.refusal ?? "") + textOf(part.refusal);
			return;
		case "reference":
			into.references.push(part);
			return;
		default:
			throw serverFailure("a part of the content of a kind that is not known");
	}
}

function textOf(value: unknown): string {
	const text = asText(value);
	if (text !== undefined) return text;
	return (asArray(value)?.slice(0, PARTS_MAX) ?? [])
		.map((part) => asText(part) ?? asText(asObject(part)?.text) ?? "")
		.join("");
}
