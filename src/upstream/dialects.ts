/** The families of model servers: one that speaks the format as it is written, and where each differs from it. */
import type { DialectName } from "../catalog/model.ts";
import { failed, UpstreamFailure } from "./call/failure.ts";
import { failureOfError, failureOfStatus } from "./call/upstream-error.ts";
import type { UsageStyle } from "./usage.ts";

/** What is particular to one family of model servers. Stateless; one constant a family. */
export interface Dialect {
	readonly name: DialectName;
	readonly usageStyle: UsageStyle;
	/** False where an unstreamed answer's usage leaves out all choices but the first. */
	readonly unaryUsageCoversChoices: boolean;
	/** Sent with every stream. */
	readonly streamOptions: Readonly<Record<string, boolean>>;
	/** The one field in which it reads the output limit of a chat; `parameters` are the deployment's. */
	limitField(parameters: ReadonlySet<string>): "max_tokens" | "max_completion_tokens";
	/** Gives a field of a chat or a completion the form that its servers want. */
	shaped(name: string, value: unknown): unknown;
	/** Whether a completion may have several prompts, and token ids in the place of text. */
	readonly prompts: { readonly many: boolean; readonly tokens: boolean };
	/** Whether embeddings take token ids, and how many inputs a request may have. */
	readonly embeddings: { readonly tokens: boolean; readonly inputsMax: number };
	/** `texts`: the form of TEI's own address, beside `/v1`. */
	readonly rerankForm: "documents" | "texts";
	/** Form fields that ask a streamed transcription for its usage. */
	readonly transcriptionStreamFields: Readonly<Record<string, string>>;
	/** The failure that an answer with another status than 200 stands for. */
	failureOfStatus(status: number, bodyText: string): UpstreamFailure;
	/** The failure that an `error` inside an answer with status 200 stands for, be it an event or the whole body. */
	failureOfError(error: unknown): UpstreamFailure;
	/**
	 * A question that tells whether the server lives, is free and does nothing to what it is busy with. `baseUrl` is the
	 * replica's.
	 */
	healthProbe(baseUrl: string): { readonly method: "GET" | "HEAD"; readonly url: string };
}

/** Anything that speaks the OpenAI format and is none of the families known by name. */
const OPENAI: Dialect = {
	name: "openai",
	usageStyle: "last",
	unaryUsageCoversChoices: true,
	streamOptions: { include_usage: true },
	limitField: () => "max_tokens",
	shaped: (_name, value) => value,
	prompts: { many: true, tokens: true },
	embeddings: { tokens: true, inputsMax: Number.POSITIVE_INFINITY },
	rerankForm: "documents",
	transcriptionStreamFields: {},
	failureOfStatus,
	failureOfError,
	/**
	 * Every server of this kind has the address, and hardly one answers HEAD there: that it answers at all is enough. GET
	 * makes llama-cpp-python break off the stream that it is generating.
	 */
	healthProbe: (baseUrl) => ({ method: "HEAD", url: `${baseUrl}/models` }),
};

/** `path` at the server's root: health endpoints are beside `/v1`, not below it. */
export function atServerRoot(baseUrl: string, path: string): string {
	return baseUrl.replace(/\/v1$/, "") + path;
}

const healthAtRoot = (baseUrl: string) => ({ method: "GET", url: atServerRoot(baseUrl, "/health") }) as const;
/** Running usage on every event, so that a client that leaves early is charged exactly. */
const RUNNING_USAGE = { include_usage: true, continuous_usage_stats: true };

function differing(name: DialectName, differences: Partial<Omit<Dialect, "name">>): Dialect {
	return Object.freeze({ ...OPENAI, ...differences, name });
}

/** Every family by the name that `tollgate.yaml` gives it. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
	openai: differing("openai", {
		/** Reasoning models refuse `max_tokens`; the deployment's parameters say which of the two it takes. */
		limitField: (parameters) =>
			parameters.has("max_completion_tokens") && !parameters.has("max_tokens") ? "max_completion_tokens" : "max_tokens",
	}),
	vllm: differing("vllm", {
		usageStyle: "per_choice",
		streamOptions: RUNNING_USAGE,
		transcriptionStreamFields: { stream_include_usage: "true" },
		healthProbe: healthAtRoot,
	}),
	/** `/health` of some versions runs a generation, so its list of models stands for it. */
	sglang: differing("sglang", {
		healthProbe: (baseUrl) => ({ method: "GET", url: `${baseUrl}/models` }),
		usageStyle: "per_choice",
		streamOptions: RUNNING_USAGE,
	}),
	/** Each choice of a stream ends with a usage record of its own. */
	"llama.cpp": differing("llama.cpp", {
		usageStyle: "sum",
		unaryUsageCoversChoices: false,
		failureOfStatus: failureOfLlamaCpp,
		healthProbe: healthAtRoot,
	}),
	/**
	 * Knows only `max_tokens`: with the newer name it would generate without a limit. Its zeros for usage that is not
	 * known are dropped where usage is read.
	 */
	ollama: differing("ollama", {
		prompts: { many: false, tokens: false },
		embeddings: { tokens: false, inputsMax: Number.POSITIVE_INFINITY },
		healthProbe: (baseUrl) => ({ method: "GET", url: atServerRoot(baseUrl, "/api/version") }),
	}),
	/** Both names of the output limit at once are a duplicate field to it; `stop` must be a list. */
	tgi: differing("tgi", {
		failureOfError: failureOfTgi,
		shaped: (name, value) => (name === "stop" && typeof value === "string" ? [value] : value),
		prompts: { many: true, tokens: false },
		healthProbe: healthAtRoot,
	}),
	/** Embeddings and reranking only; longer lists of inputs are refused by default. */
	tei: differing("tei", {
		embeddings: { tokens: true, inputsMax: 32 },
		rerankForm: "texts",
		healthProbe: healthAtRoot,
	}),
};

/**
 * What llama.cpp finds while it reads a request it often says with 500, as if it had failed itself: a picture for a model without
 * the part that reads them, arguments of a former call that are no JSON, a tool of an unknown kind. What it cannot read of its own
 * output ("Failed to parse input at pos …") is none of it.
 */
const LLAMA_CPP_REQUESTS_FAULT =
	/^(?:(?:image|audio|video) input is not supported|Failed to parse (?:messages|tools|tool call arguments)\b)/;

/** "Not supported" by this build of llama.cpp (501): the request's to mend, another try changes nothing. */
function failureOfLlamaCpp(status: number, bodyText: string): UpstreamFailure {
	if (status === 501) return new UpstreamFailure("rejected", { status, private: `status 501: ${bodyText}` });
	return failureOfStatus(status, bodyText, LLAMA_CPP_REQUESTS_FAULT);
}

/** TGI says 422 whatever went wrong after the stream had begun. */
function failureOfTgi(value: unknown): UpstreamFailure {
	const failure = failureOfError(value);
	return failure.kind === "rejected" ? failed(failure.private) : failure;
}
