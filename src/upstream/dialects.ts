/** Dialects of model servers: the plain OpenAI format, and how each family differs from it. */
import type { DialectName, ReasoningCount, UpstreamSpec } from "../catalog/model.ts";
import { failureOfError, failureOfStatus, serverFailure, UpstreamFailure } from "./call/failure.ts";
import type { UsageStyle } from "./usage.ts";

/** How a family of model servers differs from OpenAI's format. Stateless; one constant per family. */
export interface Dialect {
	readonly name: DialectName;
	readonly usageStyle: UsageStyle;
	readonly reasoningTokens: ReasoningCount;
	/** Field in which the server reads the reasoning of an earlier answer; it ignores the other field. */
	readonly reasoningField: "reasoning_content" | "reasoning";
	/** False if the usage of an unstreamed answer covers only its first choice. */
	readonly unaryUsageCoversChoices: boolean;
	readonly streamOptions: Readonly<Record<string, boolean>>;
	/** The only field in which the server reads a chat's output limit. `parameters`: those of the model. */
	limitField(parameters: ReadonlySet<string>): "max_tokens" | "max_completion_tokens";
	/** Converts the value of a request field to the server's format. */
	shaped(name: string, value: unknown): unknown;
	/** True if the server separates its prefix cache by the field `cache_salt`. */
	readonly takesCacheSalt: boolean;
	/** True if the server stops generating when the connection closes, so that no further work is wasted. */
	readonly stopsAtOnce: boolean;
	/** Whether a completion may have several prompts, and token ids instead of text. */
	readonly prompts: { readonly many: boolean; readonly tokens: boolean };
	/** Whether embeddings accept token ids, and how many inputs a request may have. */
	readonly embeddings: { readonly tokens: boolean; readonly inputsMax: number };
	/** "texts": the format of TEI's endpoint, which is outside `/v1`. */
	readonly rerankForm: "documents" | "texts";
	/** Form fields that request the usage of a streamed transcription. */
	readonly transcriptionStreamFields: Readonly<Record<string, string>>;
	failureOfStatus(status: number, bodyText: string): UpstreamFailure;
	/** Failure for an `error` inside a response with status 200. */
	failureOfError(error: unknown): UpstreamFailure;
	/** Request that shows whether the server is up without disturbing its work. `baseUrl`: the replica's. */
	healthProbe(baseUrl: string): { readonly method: "GET" | "HEAD"; readonly url: string };
}

/** Any server with OpenAI's format that belongs to none of the families below. */
const OPENAI: Dialect = {
	name: "openai",
	usageStyle: "last",
	reasoningTokens: "inside",
	reasoningField: "reasoning_content",
	unaryUsageCoversChoices: true,
	streamOptions: { include_usage: true },
	limitField: () => "max_tokens",
	shaped: (_name, value) => value,
	takesCacheSalt: false,
	stopsAtOnce: false,
	prompts: { many: true, tokens: true },
	embeddings: { tokens: true, inputsMax: Number.POSITIVE_INFINITY },
	rerankForm: "documents",
	transcriptionStreamFields: {},
	failureOfStatus,
	failureOfError,
	/** Any response proves that the server is up. A GET would make llama-cpp-python abort its running stream. */
	healthProbe: (baseUrl) => ({ method: "HEAD", url: `${baseUrl}/models` }),
};

/** URL of `path` at the server's root, because health endpoints are outside `/v1`. */
export function atServerRoot(baseUrl: string, path: string): string {
	return baseUrl.replace(/\/v1$/, "") + path;
}

const healthAtRoot = (baseUrl: string) => ({ method: "GET", url: atServerRoot(baseUrl, "/health") }) as const;
/** Requests usage on every event, so that an aborted request can be charged exactly. */
const RUNNING_USAGE = { include_usage: true, continuous_usage_stats: true };

function differing(name: DialectName, differences: Partial<Omit<Dialect, "name">>): Dialect {
	return Object.freeze({ ...OPENAI, ...differences, name });
}

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
	openai: differing("openai", {
		/** Reasoning models refuse `max_tokens`. The model's parameters show which field the model accepts. */
		limitField: (parameters) =>
			parameters.has("max_completion_tokens") && !parameters.has("max_tokens") ? "max_completion_tokens" : "max_tokens",
	}),
	vllm: differing("vllm", {
		takesCacheSalt: true,
		stopsAtOnce: true,
		usageStyle: "per_choice",
		reasoningField: "reasoning",
		streamOptions: RUNNING_USAGE,
		transcriptionStreamFields: { stream_include_usage: "true" },
		healthProbe: healthAtRoot,
	}),
	/** Reads the list of models, because `/health` runs a generation in some versions. */
	sglang: differing("sglang", {
		healthProbe: (baseUrl) => ({ method: "GET", url: `${baseUrl}/models` }),
		takesCacheSalt: true,
		stopsAtOnce: true,
		usageStyle: "per_choice",
		streamOptions: RUNNING_USAGE,
	}),
	/** llama.cpp sends a usage record at the end of each choice of a stream. */
	"llama.cpp": differing("llama.cpp", {
		stopsAtOnce: true,
		usageStyle: "sum",
		unaryUsageCoversChoices: false,
		failureOfStatus: failureOfLlamaCpp,
		healthProbe: healthAtRoot,
	}),
	/** Ollama ignores the newer names of the output limit, and would generate without a limit. */
	ollama: differing("ollama", {
		stopsAtOnce: true,
		reasoningField: "reasoning",
		prompts: { many: false, tokens: false },
		embeddings: { tokens: false, inputsMax: Number.POSITIVE_INFINITY },
		healthProbe: (baseUrl) => ({ method: "GET", url: atServerRoot(baseUrl, "/api/version") }),
	}),
	/** TGI refuses requests with both names of the output limit. `stop` must be a list. */
	tgi: differing("tgi", {
		failureOfError: failureOfTgi,
		shaped: (name, value) => (name === "stop" && typeof value === "string" ? [value] : value),
		prompts: { many: true, tokens: false },
		healthProbe: healthAtRoot,
	}),
	/** TEI serves only embeddings and reranking. 32 is its default limit of inputs per request. */
	tei: differing("tei", {
		embeddings: { tokens: true, inputsMax: 32 },
		rerankForm: "texts",
		healthProbe: healthAtRoot,
	}),
};

/** The dialect of a server, with the settings of this server. */
export function findDialect({ dialect: name, reasoningTokens = "inside" }: UpstreamSpec): Dialect {
	const dialect = DIALECTS[name];
	return dialect.reasoningTokens === reasoningTokens ? dialect : { ...dialect, reasoningTokens };
}

/**
 * Texts with which llama.cpp answers an invalid request with 500: pictures without vision, tool arguments that are not
 * JSON, unknown kinds of tools, messages that the template refuses. Not "Failed to parse input at pos …": that is its
 * own output.
 */
const LLAMA_CPP_REQUESTS_FAULT =
	/^(?:(?:image|audio|video) input is not supported|Failed to parse (?:messages|tools|tool call arguments)\b)|\bJinja Exception: /;

/** 501: this build of llama.cpp does not support the request, so the customer must change it. */
function failureOfLlamaCpp(status: number, bodyText: string): UpstreamFailure {
	if (status === 501) return new UpstreamFailure("rejected", { status, private: `status 501: ${bodyText}` });
	return failureOfStatus(status, bodyText, LLAMA_CPP_REQUESTS_FAULT);
}

/** TGI reports every failure after a stream's start as 422, so `rejected` is changed to a server failure. */
function failureOfTgi(value: unknown): UpstreamFailure {
	const failure = failureOfError(value);
	return failure.kind === "rejected" ? serverFailure(failure.private) : failure;
}
