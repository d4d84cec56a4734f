import type { Text } from "../base/translate.ts";
import type { PicoUsdPerUnit } from "../money/nano-usd.ts";

export type ModelKind = "chat" | "embedding" | "transcription" | "image" | "rerank";
export type ChatMode = "chat" | "completions";
export type DialectName = "openai" | "vllm" | "sglang" | "llama.cpp" | "ollama" | "tgi" | "tei";

export type Modality = "text" | "image" | "audio" | "embeddings" | "rerank";

/** Images of a prompt by address, which the upstream would fetch itself. `data_only` accepts only `data:` URLs. */
export type ImageUrlPolicy = "forward" | "data_only" | "reject";

export interface Rates {
	readonly input: PicoUsdPerUnit;
	/** Per prompt token read from the upstream's cache; equals `input` if no rate is given. */
	readonly cachedInput: PicoUsdPerUnit;
	readonly output: PicoUsdPerUnit;
	readonly request: PicoUsdPerUnit;
	/** Per generated image, and per image in a prompt if `input` does not cover images. */
	readonly image: PicoUsdPerUnit;
	readonly audioSecond: PicoUsdPerUnit;
	readonly search: PicoUsdPerUnit;
}

/** One version of a model's prices. Immutable: a reservation pins the version that priced it. */
export interface RateCard extends Rates {
	/** `<model id>@<version>`; primary key in Postgres. */
	readonly id: string;
	readonly version: number;
}

export interface BatchTerms {
	/** The rates of batch lines; null means the model's usual rates. */
	readonly rateCard: RateCard | null;
}

/** One replica of a deployment, as `tollgate.yaml` describes it. */
export interface UpstreamSpec {
	/** Base address with its path, without a final slash: `http://127.0.0.1:8000/v1`. */
	readonly url: string;
	readonly apiKey: string | null;
	/** The model's name on this server. */
	readonly model: string;
	readonly dialect: DialectName;
	readonly maxConcurrency: number;
	/** False for servers that close idle connections early: each request then uses its own connection. */
	readonly keepAlive: boolean;
}

export type TextNormalization = "nfkc" | "none";

/** A deployment that customers can name. Immutable. */
export interface Model {
	readonly id: string;
	/** Other names for requests. A key's allowlist is checked against `id`, so that an alias cannot bypass it. */
	readonly aliases: readonly string[];
	readonly name: string;
	readonly kind: ModelKind;
	/** Endpoints of `kind: chat`; empty for the other kinds. */
	readonly modes: ReadonlySet<ChatMode>;
	/** Absent if the model takes no managed batches. */
	readonly batch?: BatchTerms;
	readonly inputModalities: ReadonlySet<Modality>;
	readonly outputModalities: ReadonlySet<Modality>;
	readonly imageUrls: ImageUrlPolicy;
	readonly contextLength: number;
	/** Tokens; 0 for kinds that generate none. */
	readonly maxOutputTokens: number;
	/** Tokens that the chat template may add to a request's text; part of the upper bound of its cost. */
	readonly templateOverheadTokens: number;
	/** The tokenizer's Unicode form, which may lengthen a text. `none`: it reads bytes as they are. */
	readonly textNormalization: TextNormalization;
	readonly parameters: ReadonlySet<string>;
	readonly unsupportedParameters: "ignore" | "reject_essential" | "reject";
	/** Whether servers get the role `developer` or `system` for it. Absent: `keep` if all are of dialect `openai`. */
	readonly developerRole?: "keep" | "system";
	/** `2027-01-31`: the model is not served from the beginning of that day (UTC) on. Absent if no day is set. */
	readonly retiresOn?: string;
	readonly rateCard: RateCard;
	readonly upstreams: readonly UpstreamSpec[];
	/** Unix seconds when this id was first in the catalogue. */
	readonly createdS: number;
}

/** A model before its prices are pinned to a version, as described by a file, discovery or the demo. */
export interface ModelSpec extends Omit<Model, "rateCard" | "createdS" | "batch"> {
	readonly rates: Rates;
	readonly batch?: { readonly rates: Rates | null };
}

export type RouteOrder = "listed" | "price" | "speed";

export interface RouteSpec {
	readonly id: string;
	readonly name: string;
	/** Distinct ids of models of one kind, in the file's order. */
	readonly modelIds: readonly string[];
	readonly by: RouteOrder;
}

/** A name for several models: the first that answers serves the request, at its own rates. */
export interface Route {
	readonly id: string;
	readonly name: string;
	/** At least one. By price the cheapest is first; by speed the order is decided per request. */
	readonly models: readonly [Model, ...Model[]];
	readonly by: RouteOrder;
}

/** A former name that is not served any more. */
export interface Retired {
	/** The first day (UTC) without the model, as in the file. */
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
	readonly routes: ReadonlyMap<string, Route>;
	/** Names of the file's models and routes that are not served any more. */
	readonly retired: ReadonlyMap<string, Retired>;
}

export function findModel(snapshot: CatalogSnapshot, name: string): Model | undefined {
	const direct = snapshot.models.get(name);
	if (direct !== undefined) return direct;
	const id = snapshot.aliases.get(name);
	return id === undefined ? undefined : snapshot.models.get(id);
}

/** The text for a client that named a model that does not exist. */
export function notFoundText(snapshot: CatalogSnapshot, name: string): Text {
	const id = name.slice(0, 128);
	const day = snapshot.retired.get(name)?.on;
	return day === undefined
		? { id: "The model `{id}` does not exist or is not connected: see GET /v1/models.", values: { id } }
		: { id: "The model `{id}` was retired on {day}: see GET /v1/models.", values: { id, day } };
}
