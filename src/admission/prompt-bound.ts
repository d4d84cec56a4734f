import type { Model } from "../catalog/model.ts";

/** Text of a request in bytes, and what is not text. From it follow an upper bound and an estimate of its tokens. */
export interface PromptMeasure {
	readonly textBytes: number;
	/** Bytes that a tokenizer may add to it by normalising; none if absent. Only for the bound. */
	readonly addedBytes?: number;
	readonly messages: number;
	readonly images: number;
	readonly hasTools: boolean;
	/** Tokens that came as such, beside the text. */
	readonly tokens?: number;
	/** Prompts of one request, each with a context of its own; 1 if absent. */
	readonly prompts?: number;
}

/** Marks that a chat template sets around each message: role, separators, end of turn. */
const MESSAGE_TOKENS = 16;
/** What a template says about tools before it lists them. */
const TOOLS_TOKENS = 512;
/** The largest tiling of one image among common vision encoders (Qwen-VL's default of 16,384 patches). */
const IMAGE_TOKENS = 16_384;
/** An image mostly costs about this much; only for estimates. */
const IMAGE_TOKENS_TYPICAL = 1_024;
/** English prose is near 4 bytes a token, other text below it; only for estimates. */
const BYTES_PER_TOKEN = 4;

/** What the bound needs to know of a model's tokenizer. */
type Reader = Pick<Model, "textNormalization" | "contextLength">;
type TextMeasure = Required<Pick<PromptMeasure, "textBytes" | "addedBytes">>;
type Growing<Measure> = { -readonly [Field in keyof Measure]: Measure[Field] };

/** Text that is known by its length alone, with little beyond ASCII in it. */
export interface PlainLength {
	readonly bytes: number;
	/** UTF-16 units. */
	readonly chars: number;
}

const NO_TEXT: PlainLength = { bytes: 0, chars: 0 };

/**
 * Measures a chat request: its messages, tools, and what else is rendered into the prompt.
 * `leftOut`: what the messages say more than is seen here.
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
	// Anything else (audio, files) is bounded by its own size: an encoder makes fewer tokens than base64 has bytes.
	else addText(measure, jsonOf(part), model);
}

function jsonOf(value: unknown): string {
	return JSON.stringify(value) ?? "";
}

/** Text in bytes, and what normalising may add to them. */
export function measureText(text: string, model: Reader): TextMeasure {
	const measure = { textBytes: 0, addedBytes: 0 };
	addText(measure, text, model);
	return measure;
}

export function addText(measure: Growing<TextMeasure>, text: string, model: Reader): void {
	const bytes = Buffer.byteLength(text);
	measure.textBytes += bytes;
	// Nothing of ASCII changes. What fills the context alone is bounded by that.
	if (bytes === text.length || bytes >= model.contextLength || model.textNormalization === "none") return;
	const length = { bytes, chars: text.length };
	measure.addedBytes += isMostlyAscii(length)
		? normalizedMoreMax(length)
		: normalizedBytes(text, model.contextLength) - bytes;
}

/** For each byte that a character has more than units in UTF-16: U+FDFA has two more, and becomes 33 bytes for three. */
const NORMALIZED_MORE = 15;
/** A bound so much above the text itself is as good as an exact one, and need not look at it. */
const MORE_SHARE = 1 / 16;

/** Whether little is added by normalising, whatever stands in it. */
export function isMostlyAscii(length: PlainLength): boolean {
	return normalizedMoreMax(length) <= length.bytes * MORE_SHARE;
}

/** The most bytes that normalising adds: what stands for a character in NFKD is its longest form, and composing shortens. */
function normalizedMoreMax({ bytes, chars }: PlainLength): number {
	return NORMALIZED_MORE * (bytes - chars);
}

/** Normalised at once, characters; a cut between two of them makes the text longer, if anything. */
const NORMALIZED_CHARS = 16_384;

/**
 * The bytes of a text as it stands or in the form NFKC (Unicode Standard Annex 15), whichever are more: one character of
 * three bytes may become eighteen characters of 33. Not looked at further than `enough`.
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
 * An upper bound of the prompt's tokens: every token of a byte-level vocabulary stands for at least one byte of the
 * text as the tokenizer reads it, a template adds its marks, an image has a largest tiling. Never more than the context holds: beyond it a server refuses.
 */
export function promptTokensMax(measure: PromptMeasure, model: Model): number {
	const marks =
		model.templateOverheadTokens + measure.messages * MESSAGE_TOKENS + (measure.hasTools ? TOOLS_TOKENS : 0);
	const context = model.contextLength * (measure.prompts ?? 1);
	const bytes = measure.textBytes + (measure.addedBytes ?? 0);
	return Math.min(context, bytes + (measure.tokens ?? 0) + marks + measure.images * IMAGE_TOKENS);
}

/** A likely count, where the upstream gave none. Never above the bound. */
export function promptTokensEstimate(measure: PromptMeasure, model: Model): number {
	const estimate =
		Math.ceil(measure.textBytes / BYTES_PER_TOKEN) +
		(measure.tokens ?? 0) +
		measure.messages * 4 +
		measure.images * IMAGE_TOKENS_TYPICAL;
	return Math.min(estimate, promptTokensMax(measure, model));
}

/**
 * A likely count of generated tokens. `outputChunks` are the events of a stream that carried some of them: a server
 * sends a token as soon as it has one, so that each holds one or, where it gathers them, more.
 */
export function completionTokensEstimate(outputBytes: number, outputChunks = 0): number {
	return Math.max(outputChunks, Math.ceil(outputBytes / BYTES_PER_TOKEN));
}
