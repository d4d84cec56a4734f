/**
 * Whose a request field is: read by the gateway and written anew by this service, never sent, or the deployment's to
 * honour. The one list for the readers of requests, the writers of what goes upstream and the check of the catalogue.
 */
import type { DialectName, ModelKind } from "./model.ts";

/** The endpoints that send requests upstream, by the names that usage is recorded under. */
export type Endpoint = "chat" | "completions" | "embeddings" | "transcription" | "image" | "rerank";

type Reasons = Readonly<Record<string, string>>;

const OUTPUT_LIMIT = "the output limit is `max_tokens` here";
const NOT_RESERVED = "what is generated and not delivered cannot be reserved for";

/**
 * Fields that the gateway reads itself. What goes upstream under their names is written from what was reserved: a
 * client's own value never passes.
 */
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

/** Other names of what the gateway says itself, and what nothing was reserved for: no deployment can be given them. */
const NEVER_SENT: Partial<Record<ModelKind, Reasons>> = {
	chat: {
		best_of: NOT_RESERVED,
		n_predict: OUTPUT_LIMIT,
		max_new_tokens: OUTPUT_LIMIT,
		num_predict: OUTPUT_LIMIT,
	},
	image: { partial_images: "images are delivered whole" },
};

const ONE_CHOICE: Reasons = {
	n: "its servers answer with one choice, whatever is asked",
	logit_bias: "its servers ignore it or have another",
};

/** What a family's servers ignore, refuse or misread in a chat or a completion, so that it is never sent to them. */
const UNKNOWN_TO: Partial<Record<DialectName, Reasons>> = { ollama: ONE_CHOICE, tgi: ONE_CHOICE };

/** What TEI's rerank honours: the gateway sees to these two; further options its servers do not take. */
const RANKING: ReadonlySet<string> = new Set(["top_n", "return_documents"]);

/**
 * Why a deployment cannot honour a request field; undefined if it can, as far as is known. A field that is listed all
 * the same would be promised in the list of models and then dropped in silence.
 */
export function whyNotHonoured(dialect: DialectName, kind: ModelKind, parameter: string): string | undefined {
	const never = NEVER_SENT[kind];
	if (never !== undefined && Object.hasOwn(never, parameter)) return never[parameter];
	const unknown = kind === "chat" ? UNKNOWN_TO[dialect] : undefined;
	if (unknown !== undefined && Object.hasOwn(unknown, parameter)) return unknown[parameter];
	return kind === "rerank" && dialect === "tei" && !RANKING.has(parameter)
		? "its servers take no such options"
		: undefined;
}

/** Whether a family's servers have this field of chats and completions, as far as is known. */
export function isKnownTo(dialect: DialectName, field: string): boolean {
	return !Object.hasOwn(UNKNOWN_TO[dialect] ?? {}, field);
}

const NOT_COPIED = {
	chat: new Map<DialectName, ReadonlySet<string>>(),
	completions: new Map<DialectName, ReadonlySet<string>>(),
};

/** The fields of a client's request that are not copied into what goes to this family's servers. */
export function notCopied(dialect: DialectName, kind: "chat" | "completions"): ReadonlySet<string> {
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
