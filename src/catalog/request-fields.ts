/**
 * What happens to each request field: the gateway sets it, drops it, or copies it to the model server. Request parsers,
 * dialects and the catalogue's checks share these tables.
 */
import type { DialectName, ModelKind } from "./model.ts";

/** Endpoints that send requests to model servers, named as in usage records. */
export type Endpoint = "chat" | "completions" | "embeddings" | "transcription" | "image" | "rerank";

type Reasons = Readonly<Record<string, string>>;

const OUTPUT_LIMIT = "the output limit is `max_tokens` here";
const NOT_RESERVED = "output that is generated but not delivered cannot be reserved for";

/** Fields that the gateway reads itself. What it sends for them follows from the reservation. */
export const OWN_FIELDS: Readonly<Record<Endpoint, ReadonlySet<string>>> = {
	chat: new Set(["model", "messages", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"]),
	completions: new Set([
		"model",
		"prompt",
		"stream",
		"stream_options",
		"n",
		"best_of",
		"max_tokens",
		"max_completion_tokens",
	]),
	embeddings: new Set(["model", "input", "encoding_format"]),
	transcription: new Set(["model", "response_format", "stream"]),
	image: new Set(["model", "prompt", "n", "stream", "partial_images"]),
	rerank: new Set(["model", "query", "documents", "top_n", "return_documents"]),
};

/** Fields that are never sent: other names of fields that the gateway sets, and fields whose cost is not reserved. */
const NEVER_SENT: Partial<Record<ModelKind, Reasons>> = {
	chat: { best_of: NOT_RESERVED, n_predict: OUTPUT_LIMIT, max_new_tokens: OUTPUT_LIMIT, num_predict: OUTPUT_LIMIT },
	image: { partial_images: "images are delivered whole" },
};

const ONE_CHOICE: Reasons = {
	n: "its servers return one choice regardless of `n`",
	logit_bias: "its servers ignore it or use another format",
};

const NO_ECHO: Reasons = { echo: "its servers return neither the prompt nor its logprobs" };
const IGNORED = "its servers ignore it";
const NO_LENGTH: Reasons = { min_tokens: IGNORED, ignore_eos: IGNORED };
const NO_PREFIX: Reasons = { continue_final_message: IGNORED, add_generation_prompt: IGNORED };

/** Fields of chats and completions that servers of a dialect ignore, refuse or misread; never sent to them. */
const UNKNOWN_TO: Partial<Record<DialectName, Reasons>> = {
	"llama.cpp": { ...NO_ECHO, suffix: "its servers refuse it", min_tokens: IGNORED },
	ollama: { ...ONE_CHOICE, ...NO_ECHO, ...NO_LENGTH, ...NO_PREFIX, tool_choice: IGNORED },
	tgi: { ...ONE_CHOICE, ...NO_ECHO, ...NO_LENGTH, ...NO_PREFIX, suffix: "its servers refuse it" },
};

/** Fields that change the meaning of an answer, with the values that have no effect. */
const ESSENTIAL: ReadonlyMap<string, readonly unknown[]> = new Map<string, readonly unknown[]>([
	["add_generation_prompt", [true]],
	["best_of", [1]],
	["continue_final_message", [false]],
	["dimensions", []],
	["echo", [false]],
	["function_call", ["auto", "none"]],
	["ignore_eos", [false]],
	["logit_bias", []],
	["min_tokens", [0]],
	["response_format", ["text"]],
	["suffix", [""]],
	["tool_choice", ["auto", "none"]],
]);
const OF_TEXT: ReadonlySet<ModelKind> = new Set(["chat", "embedding"]);

/** True if an answer that ignores this field would be wrong, and not only differently tuned. */
export function isEssentialField(kind: ModelKind, field: string, value: unknown): boolean {
	const neutral = OF_TEXT.has(kind) ? ESSENTIAL.get(field) : undefined;
	if (neutral === undefined) return false;
	return !neutral.includes(field === "response_format" ? (value as { type?: unknown }).type : value);
}

/** Options of TEI's rerank endpoint that the gateway applies itself. */
const RANKING: ReadonlySet<string> = new Set(["top_n", "return_documents"]);

/** Why servers of a dialect do not support a parameter in the catalogue; undefined if they do. */
export function whyUnsupported(dialect: DialectName, kind: ModelKind, parameter: string): string | undefined {
	const never = NEVER_SENT[kind];
	if (never !== undefined && Object.hasOwn(never, parameter)) return never[parameter];
	const unknown = kind === "chat" ? UNKNOWN_TO[dialect] : undefined;
	if (unknown !== undefined && Object.hasOwn(unknown, parameter)) return unknown[parameter];
	return kind === "rerank" && dialect === "tei" && !RANKING.has(parameter)
		? "its servers accept no such options"
		: undefined;
}

/** True if servers of a dialect are known to support this field of chats and completions. */
export function supportsField(dialect: DialectName, field: string): boolean {
	return !Object.hasOwn(UNKNOWN_TO[dialect] ?? {}, field);
}

const NOT_COPIED = {
	chat: new Map<DialectName, ReadonlySet<string>>(),
	completions: new Map<DialectName, ReadonlySet<string>>(),
};

/** Fields of clients that are not copied into requests to servers of this dialect. */
export function fieldsNotCopied(dialect: DialectName, kind: "chat" | "completions"): ReadonlySet<string> {
	let names = NOT_COPIED[kind].get(dialect);
	if (names === undefined) {
		names = new Set([
			...OWN_FIELDS[kind],
			...Object.keys(NEVER_SENT.chat ?? {}),
			...Object.keys(UNKNOWN_TO[dialect] ?? {}),
		]);
		NOT_COPIED[kind].set(dialect, names);
	}
	return names;
}
