import type { PicoUsdPerUnit } from "../money/nano-usd.ts";

export type ModelKind = "chat" | "embedding" | "transcription" | "image" | "rerank";
export type ChatMode = "chat" | "completions";
export type DialectName = "openai" | "vllm" | "sglang" | "llama.cpp" | "ollama" | "tgi" | "tei";

/** What a prompt may hold, or an answer. */
export type Modality = "text" | "image" | "audio";

/**
 * What happens to images in a prompt that are given by address, which the upstream would fetch itself from inside
 * the operator's network. `data_only` takes images that are part of the request (`data:` URLs) and no others.
 */
export type ImageUrlPolicy = "forward" | "data_only" | "reject";

/** A model's prices. */
export interface Rates {
	/** Per token. */
	readonly input: PicoUsdPerUnit;
	/** Per prompt token read from the upstream's cache; equals `input` where no rate is given. */
	readonly cachedInput: PicoUsdPerUnit;
	/** Per generated token. */
	readonly output: PicoUsdPerUnit;
	readonly request: PicoUsdPerUnit;
	/** Per generated image, and per image in a prompt if `input` does not cover it. */
	readonly image: PicoUsdPerUnit;
	readonly audioSecond: PicoUsdPerUnit;
	/** Per rerank search. */
	readonly search: PicoUsdPerUnit;
}

/** One version of a model's prices. Immutable; a reservation pins the version it was priced with. */
export interface RateCard extends Rates {
	/** `<model id>@<version>`; primary key in Postgres. */
	readonly id: string;
	readonly version: number;
}

/** On what terms a deployment takes lines of managed batches. */
export interface BatchTerms {
	/** What lines are charged by; null: the model's usual rates. */
	readonly rateCard: RateCard | null;
}

/** One address of a deployment, as `tollgate.yaml` says it. */
export interface UpstreamSpec {
	/** Base address with its path, without a slash at the end: `http://127.0.0.1:8000/v1`. */
	readonly url: string;
	readonly apiKey: string | null;
	/** The name that this server knows the model by. */
	readonly model: string;
	readonly dialect: DialectName;
	readonly maxConcurrency: number;
	/** False for servers that close idle connections early: one connection per request. */
	readonly keepAlive: boolean;
}

export type TextNormalization = "nfkc" | "none";

/** A deployment that customers can name. Immutable. */
export interface Model {
	readonly id: string;
	/** Other names that requests may use. The allowlist of a key is checked on `id`, so that no alias gets around it. */
	readonly aliases: readonly string[];
	readonly name: string;
	readonly kind: ModelKind;
	/** Endpoints of `kind: chat`; empty for the other kinds. */
	readonly modes: ReadonlySet<ChatMode>;
	/** Absent: it takes no lines of managed batches. */
	readonly batch?: BatchTerms;
	readonly inputModalities: ReadonlySet<Modality>;
	readonly outputModalities: ReadonlySet<Modality>;
	readonly imageUrls: ImageUrlPolicy;
	/** Tokens. */
	readonly contextLength: number;
	/** Tokens; 0 for kinds that generate none. */
	readonly maxOutputTokens: number;
	/** Tokens that the chat template may add to the text of a request, for the upper bound of its cost. */
	readonly templateOverheadTokens: number;
	/** The Unicode form that its tokenizer brings text into, which may make it longer; none: it reads bytes as they are. */
	readonly textNormalization: TextNormalization;
	/** Optional request fields that the deployment honours. */
	readonly parameters: ReadonlySet<string>;
	readonly unsupportedParameters: "ignore" | "reject";
	/** `2027-01-31`: from the beginning of that day (UTC) on it is not served. Absent: nobody has said so. */
	readonly retiresOn?: string;
	readonly rateCard: RateCard;
	readonly upstreams: readonly UpstreamSpec[];
	/** Unix seconds of the first time this id was seen in the catalogue. */
	readonly createdS: number;
}

/** A model before its prices are pinned to a version: what a file, the discovery or the demo describe. */
export interface ModelSpec extends Omit<Model, "rateCard" | "createdS" | "batch"> {
	readonly rates: Rates;
	readonly batch?: { readonly rates: Rates | null };
}

/** In which order a route tries its models. */
export type RouteOrder = "listed" | "price" | "speed";

/** A name that stands for several models, as a file describes it. */
export interface RouteSpec {
	readonly id: string;
	readonly name: string;
	/** Ids of models of one kind, each once, as listed. */
	readonly modelIds: readonly string[];
	readonly by: RouteOrder;
}

/** A name that stands for several models: the first that answers serves the request, at its own rates. */
export interface Route {
	readonly id: string;
	readonly name: string;
	/** At least one. By price the cheapest is first; by speed their order is found out when a request comes. */
	readonly models: readonly [Model, ...Model[]];
	readonly by: RouteOrder;
}

/** What a name stood for that is not served any more. */
export interface Retired {
	/** Day in UTC, as the file says it: the first one without the model. */
	readonly on: string;
	readonly kind: ModelKind;
}

/** The whole catalogue at one moment; swapped whole, never changed in place. */
export interface CatalogSnapshot {
	/** Grows with each swap. */
	readonly revision: number;
	/** By id, in the order of the file. */
	readonly models: ReadonlyMap<string, Model>;
	/** Alias → id. `findModel` looks through both. */
	readonly aliases: ReadonlyMap<string, string>;
	/** By id, in the order of the file. */
	readonly routes: ReadonlyMap<string, Route>;
	/** Names of models and routes of the file that are not served any more. */
	readonly retired: ReadonlyMap<string, Retired>;
}
