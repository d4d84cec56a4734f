import type { Model } from "../catalog/model.ts";

/** Size of a prompt: bytes of text, and numbers of other parts. Its tokens are bounded and estimated from it. */
export interface PromptMeasure {
	readonly textBytes: number;
	/** Bytes that Unicode normalization may add. Used for the bound only; absent: 0. */
	readonly addedBytes?: number;
	readonly messages: number;
	readonly images: number;
	readonly hasTools: boolean;
	/** Prompt tokens that the client sent as token ids. */
	readonly tokens?: number;
	/** Number of prompts in the request, each with the full context length; absent: 1. */
	readonly prompts?: number;
}

/** Maximum tokens that a chat template adds per message: role, separators, end of turn. */
const MESSAGE_TOKENS = 16;
/** Maximum tokens that a chat template adds before the list of tools. */
const TOOLS_TOKENS = 512;
/** Maximum tokens of one image in common vision encoders (16,384 patches, Qwen-VL's default). */
const IMAGE_TOKENS = 16_384;
/** Usual number of tokens of an image, for estimates only. */
const IMAGE_TOKENS_TYPICAL = 1_024;
/** Bytes per token of English text, for estimates only. Other languages have fewer. */
const BYTES_PER_TOKEN = 4;

/** Settings of the model that the bound depends on. */
type Reader = Pick<Model, "textNormalization" | "contextLength">;
type TextMeasure = Required<Pick<PromptMeasure, "textBytes" | "addedBytes">>;
type Growing<Measure> = { -readonly [Field in keyof Measure]: Measure[Field] };

/** Length of a text that is mostly ASCII and is not in memory. */
export interface AsciiLength {
	readonly bytes: number;
	/** Length in UTF-16 code units. */
	readonly chars: number;
}

const NO_TEXT: AsciiLength = { bytes: 0, chars: 0 };

/** Measures messages, tools and other parts of a chat. `leftOut`: size of texts that were removed from the body. */
export function measureChat(
	messages: readonly unknown[],
	rendered: readonly unknown[],
	model: Reader,
	leftOut: AsciiLength = NO_TEXT,
): PromptMeasure {
	const addedBytes = model.textNormalization === "none" ? 0 : normalizedMoreMax(leftOut);
	const hasTools = rendered.length > 0;
	const measure = { textBytes: leftOut.bytes, addedBytes, messages: messages.length, images: 0, hasTools };
	for (const message of messages) measureMessage(message as Readonly<Record<string, unknown>>, measure, model);
	for (const value of rendered) addTextMeasure(measure, jsonOf(value), model);
	return measure;
}

type ChatMeasure = Growing<TextMeasure> & { images: number };

function measureMessage(message: Readonly<Record<string, unknown>>, measure: ChatMeasure, model: Reader): void {
	for (const field in message) {
		const value = message[field];
		if (typeof value === "string") addTextMeasure(measure, value, model);
		else if (field === "content" && Array.isArray(value)) for (const part of value) measurePart(part, measure, model);
		else if (value !== null && value !== undefined) addTextMeasure(measure, jsonOf(value), model);
	}
}

function measurePart(part: unknown, measure: ChatMeasure, model: Reader): void {
	const { type, text } = part as { type?: unknown; text?: unknown };
	if (type === "text" && typeof text === "string") addTextMeasure(measure, text, model);
	else if (type === "image_url") measure.images += 1;
	// Other parts (audio, files) count as text: an encoder makes fewer tokens of them than their base64 has bytes.
	else addTextMeasure(measure, jsonOf(part), model);
}

const jsonOf = (value: unknown): string => JSON.stringify(value) ?? "";

/** Measures a text: its bytes, and the bytes that Unicode normalization may add. */
export function measureText(text: string, model: Reader): TextMeasure {
	const measure = { textBytes: 0, addedBytes: 0 };
	addTextMeasure(measure, text, model);
	return measure;
}

export function addTextMeasure(measure: Growing<TextMeasure>, text: string, model: Reader): void {
	const bytes = Buffer.byteLength(text);
	measure.textBytes += bytes;
	// Normalization does not change ASCII text, and a prompt above the context length is refused whatever its size.
	if (bytes === text.length || bytes >= model.contextLength || model.textNormalization === "none") return;
	const length = { bytes, chars: text.length };
	measure.addedBytes += isMostlyAscii(length)
		? normalizedMoreMax(length)
		: normalizedBytes(text, model.contextLength) - bytes;
}

/** Maximum bytes that normalization adds for each byte of UTF-8 above the UTF-16 length: U+FDFA grows from 3 to 33. */
const NORMALIZED_MORE = 15;
/** If normalization adds at most this share of the bytes, the estimate is used without normalizing the text. */
const MORE_SHARE = 1 / 16;

/** True if normalization can add only few bytes, whatever the text is. */
export function isMostlyAscii(length: AsciiLength): boolean {
	return normalizedMoreMax(length) <= length.bytes * MORE_SHARE;
}

/** Maximum bytes that normalization can add. NFKD is the longest form, because composition only shortens it. */
const normalizedMoreMax = ({ bytes, chars }: AsciiLength): number => NORMALIZED_MORE * (bytes - chars);

/** Code points from here on are not longer when they are normalized. */
const NORMALIZED_END = 0x20000;
/** For each code point: two lengths of 7 bits and `IS_MARK`, as `sizeOf` computes them; 0: not yet computed. */
const sizes = new Uint16Array(NORMALIZED_END);
const IS_MARK = 1 << 14;

/**
 * Upper bound of the bytes of a text and of its NFKC form (Unicode Standard Annex 15): 3 bytes may become 33. Stops
 * counting at `enough`. Adds up single characters, because normalizing takes quadratic time for a run of marks.
 */
function normalizedBytes(text: string, enough: number): number {
	let bytes = 0;
	for (let at = 0, size = sizeAt(text, 0); at < text.length && bytes < enough; ) {
		at += (text.codePointAt(at) as number) > 0xffff ? 2 : 1;
		const next = sizeAt(text, at);
		// A mark may replace the mark of a composed character before it, so that both are longer than alone.
		bytes += ((size | next) & IS_MARK ? size >> 7 : size) & 0x7f;
		size = next;
	}
	return bytes;
}

function sizeAt(text: string, at: number): number {
	const code = text.codePointAt(at) ?? 0;
	if (code >= NORMALIZED_END) return (4 << 7) | 4;
	if (sizes[code] === 0) sizes[code] = sizeOf(String.fromCodePoint(code));
	return sizes[code] as number;
}

/** Maximum bytes of a character and its NFKC form, and of the character and its NFKD form. */
function sizeOf(character: string): number {
	const apart = character.normalize("NFKD");
	const [own, decomposed] = [Buffer.byteLength(character), Buffer.byteLength(apart)];
	const composed = apart === character ? own : Buffer.byteLength(character.normalize("NFKC"));
	return (Math.max(own, decomposed) << 7) | Math.max(own, composed) | (/^\p{M}/u.test(apart) ? IS_MARK : 0);
}

/**
 * Upper bound of the prompt's tokens. A token of a byte-level vocabulary has at least one byte; template and images
 * have their own bounds. Never above the context length, because model servers refuse longer prompts.
 */
export function promptTokensMax(measure: PromptMeasure, model: Model): number {
	const marks =
		model.templateOverheadTokens + measure.messages * MESSAGE_TOKENS + (measure.hasTools ? TOOLS_TOKENS : 0);
	const context = model.contextLength * (measure.prompts ?? 1);
	const bytes = measure.textBytes + (measure.addedBytes ?? 0);
	return Math.min(context, bytes + (measure.tokens ?? 0) + marks + measure.images * IMAGE_TOKENS);
}

/** Estimated prompt tokens, for an upstream that reports no usage; never above `promptTokensMax`. */
export function promptTokensEstimate(measure: PromptMeasure, model: Model): number {
	const estimate =
		Math.ceil(measure.textBytes / BYTES_PER_TOKEN) +
		(measure.tokens ?? 0) +
		measure.messages * 4 +
		measure.images * IMAGE_TOKENS_TYPICAL;
	return Math.min(estimate, promptTokensMax(measure, model));
}

/** Estimated completion tokens. `outputChunks`: stream events with output, each of which has at least one token. */
export function completionTokensEstimate(outputBytes: number, outputChunks = 0): number {
	return Math.max(outputChunks, Math.ceil(outputBytes / BYTES_PER_TOKEN));
}
