import type { Model } from "../catalog/model.ts";

/**
 * Size of a request's prompt: text bytes and other parts. An upper bound and an estimate of its tokens follow from it.
 */
export interface PromptMeasure {
	readonly textBytes: number;
	/** Bytes that normalization may add; 0 if absent. Only for the bound. */
	readonly addedBytes?: number;
	readonly messages: number;
	readonly images: number;
	readonly hasTools: boolean;
	/** Prompt tokens given as numbers. */
	readonly tokens?: number;
	/** Prompts of one request, each with its own context; 1 if absent. */
	readonly prompts?: number;
}

/** Tokens that a chat template adds per message: role, separators, end of turn. */
const MESSAGE_TOKENS = 16;
/** Tokens that a template adds before the list of tools. */
const TOOLS_TOKENS = 512;
/** The largest tiling of one image among common vision encoders (16,384 patches, Qwen-VL's default). */
const IMAGE_TOKENS = 16_384;
/** Usual tokens of an image; only for estimates. */
const IMAGE_TOKENS_TYPICAL = 1_024;
/** English prose has about 4 bytes per token, other text fewer; only for estimates. */
const BYTES_PER_TOKEN = 4;

/** What the bound needs of a model's tokenizer. */
type Reader = Pick<Model, "textNormalization" | "contextLength">;
type TextMeasure = Required<Pick<PromptMeasure, "textBytes" | "addedBytes">>;
type Growing<Measure> = { -readonly [Field in keyof Measure]: Measure[Field] };

/** Text that is known by its length only and has few characters beyond ASCII. */
export interface PlainLength {
	readonly bytes: number;
	/** UTF-16 code units. */
	readonly chars: number;
}

const NO_TEXT: PlainLength = { bytes: 0, chars: 0 };

/**
 * Measures a chat request: messages, tools and other rendered parts. `leftOut`: text of the messages that was cut from
 * the value.
 */
export function measureChat(
	messages: readonly unknown[],
	rendered: readonly unknown[],
	model: Reader,
	leftOut: PlainLength = NO_TEXT,
): PromptMeasure {
	const addedBytes = model.textNormalization === "none" ? 0 : normalizedMoreMax(leftOut);
	const hasTools = rendered.length > 0;
	const measure = { textBytes: leftOut.bytes, addedBytes, messages: messages.length, images: 0, hasTools };
	for (const message of messages) measureMessage(message as Readonly<Record<string, unknown>>, measure, model);
	for (const value of rendered) addText(measure, jsonOf(value), model);
	return measure;
}

type ChatMeasure = Growing<TextMeasure> & { images: number };

function measureMessage(message: Readonly<Record<string, unknown>>, measure: ChatMeasure, model: Reader): void {
	for (const field in message) {
		const value = message[field];
		if (typeof value === "string") addText(measure, value, model);
		else if (field === "content" && Array.isArray(value)) for (const part of value) measurePart(part, measure, model);
		else if (value !== null && value !== undefined) addText(measure, jsonOf(value), model);
	}
}

function measurePart(part: unknown, measure: ChatMeasure, model: Reader): void {
	const { type, text } = part as { type?: unknown; text?: unknown };
	if (type === "text" && typeof text === "string") addText(measure, text, model);
	else if (type === "image_url") measure.images += 1;
	// Other parts (audio, files) are bounded by their size: an encoder makes fewer tokens than base64 has bytes.
	else addText(measure, jsonOf(part), model);
}

function jsonOf(value: unknown): string {
	return JSON.stringify(value) ?? "";
}

/** Bytes of a text, and bytes that normalization may add. */
export function measureText(text: string, model: Reader): TextMeasure {
	const measure = { textBytes: 0, addedBytes: 0 };
	addText(measure, text, model);
	return measure;
}

export function addText(measure: Growing<TextMeasure>, text: string, model: Reader): void {
	const bytes = Buffer.byteLength(text);
	measure.textBytes += bytes;
	// ASCII does not change. A text that fills the context alone is bounded by the context.
	if (bytes === text.length || bytes >= model.contextLength || model.textNormalization === "none") return;
	const length = { bytes, chars: text.length };
	measure.addedBytes += isMostlyAscii(length)
		? normalizedMoreMax(length)
		: normalizedBytes(text, model.contextLength) - bytes;
}

/** Added bytes per byte of UTF-8 beyond the UTF-16 units: U+FDFA has two of them and grows from 3 to 33 bytes. */
const NORMALIZED_MORE = 15;
/** A bound so far above the text itself is good enough without normalizing. */
const MORE_SHARE = 1 / 16;

/** Whether normalization adds little, whatever the text. */
export function isMostlyAscii(length: PlainLength): boolean {
	return normalizedMoreMax(length) <= length.bytes * MORE_SHARE;
}

/** The most bytes that normalization adds: NFKD is a character's longest form, and composition shortens it. */
function normalizedMoreMax({ bytes, chars }: PlainLength): number {
	return NORMALIZED_MORE * (bytes - chars);
}

/** Characters that are normalized at once; a cut between two can only lengthen the result. */
const NORMALIZED_CHARS = 16_384;

/**
 * Bytes of a text as it is or in NFKC (Unicode Standard Annex 15), whichever is more: a character of 3 bytes may become
 * 33. Stops at `enough`.
 */
function normalizedBytes(text: string, enough: number): number {
	let bytes = 0;
	for (let at = 0; at < text.length && bytes < enough; at += NORMALIZED_CHARS) {
		const part = text.slice(at, at + NORMALIZED_CHARS);
		bytes += Math.max(Buffer.byteLength(part), Buffer.byteLength(part.normalize("NFKC")));
	}
	return bytes;
}

/**
 * Upper bound of the prompt's tokens: each token of a byte-level vocabulary stands for at least one byte, the template
 * adds its marks, an image has a largest tiling. At most the context length, beyond which servers refuse.
 */
export function promptTokensMax(measure: PromptMeasure, model: Model): number {
	const marks =
		model.templateOverheadTokens + measure.messages * MESSAGE_TOKENS + (measure.hasTools ? TOOLS_TOKENS : 0);
	const context = model.contextLength * (measure.prompts ?? 1);
	const bytes = measure.textBytes + (measure.addedBytes ?? 0);
	return Math.min(context, bytes + (measure.tokens ?? 0) + marks + measure.images * IMAGE_TOKENS);
}

/** Estimated prompt tokens, if the upstream reported none. At most the bound. */
export function promptTokensEstimate(measure: PromptMeasure, model: Model): number {
	const estimate =
		Math.ceil(measure.textBytes / BYTES_PER_TOKEN) +
		(measure.tokens ?? 0) +
		measure.messages * 4 +
		measure.images * IMAGE_TOKENS_TYPICAL;
	return Math.min(estimate, promptTokensMax(measure, model));
}

/**
 * Estimated completion tokens. `outputChunks` are stream events with output: a server sends each token at once, or
 * gathers several.
 */
export function completionTokensEstimate(outputBytes: number, outputChunks = 0): number {
	return Math.max(outputChunks, Math.ceil(outputBytes / BYTES_PER_TOKEN));
}
