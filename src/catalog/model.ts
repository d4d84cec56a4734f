import type { Text } from "../base/translate.ts";
import type { NanoUsd, PicoUsdPerUnit } from "../money/nano-usd.ts";

export type ModelKind = "chat" | "embedding" | "transcription" | "image" | "rerank";
export type ChatMode = "chat" | "completions";
export type DialectName = "openai" | "vllm" | "sglang" | "llama.cpp" | "ollama" | "tgi" | "tei";

/** Whether a server counts reasoning tokens within its completion tokens, as OpenAI does, or separately. */
export type ReasoningCount = "inside" | "beside";

/** The field in which a model's servers read the reasoning of earlier answers. `omit`: they refuse reasoning. */
export type ReasoningHistory = "reasoning_content" | "reasoning" | "omit";

export type Modality = "text" | "image" | "audio" | "embeddings" | "rerank";

/** What happens to image URLs in prompts, which the model server would fetch. `data_only`: only `data:` URLs. */
export type ImageUrlPolicy = "forward" | "data_only" | "reject";

export interface Rates {
	readonly input: PicoUsdPerUnit;
	/** Rate for a prompt token that the server read from its cache; by default the rate `input`. */
	readonly cachedInput: PicoUsdPerUnit;
	readonly output: PicoUsdPerUnit;
	readonly request: PicoUsdPerUnit;
	/** Rate for a generated image; also for an image in a prompt if `input` does not cover it. */
	readonly image: PicoUsdPerUnit;
	readonly audioSecond: PicoUsdPerUnit;
	readonly search: PicoUsdPerUnit;
}

/** A version of a model's prices. Immutable, because each reservation stores the id of the version that prices it. */
export interface RateCard extends Rates {
	/** `<model id>@<version>`; primary key in Postgres. */
	readonly id: string;
	readonly version: number;
}

/** What a model costs the operator: per replica and hour, and per token. */
export interface OperatorCost {
	readonly replicaHour: NanoUsd;
	readonly input: number;
	readonly output: number;
}

/** One model server, as described in `tollgate.yaml`. */
export interface UpstreamSpec {
	/** Base URL with its path, without a final slash: `http://127.0.0.1:8000/v1`. */
	readonly url: string;
	readonly apiKey: string | null;
	readonly model: string;
	readonly dialect: DialectName;
	readonly maxConcurrency: number;
	/** False for servers that close idle connections early: each request then opens a new connection. */
	readonly keepAlive: boolean;
	/** Default: `inside`. */
	readonly reasoningTokens?: ReasoningCount;
}

export type TextNormalization = "nfkc" | "none";

/** A model that customers can request, with its servers. Immutable. */
export interface Model {
	readonly id: string;
	/** Other names in requests. A key's list of allowed models is compared with `id`, so an alias does not bypass it. */
	readonly aliases: readonly string[];
	readonly name: string;
	readonly kind: ModelKind;
	/** Endpoints of a chat model; empty for other kinds. */
	readonly modes: ReadonlySet<ChatMode>;
	/** Terms of managed batches; undefined if the model supports none. */
	readonly batch?: { readonly rateCard: RateCard | null };
	readonly inputModalities: ReadonlySet<Modality>;
	readonly outputModalities: ReadonlySet<Modality>;
	readonly imageUrls: ImageUrlPolicy;
	readonly contextLength: number;
	/** Maximum output tokens per choice; 0 for kinds of models that generate no text. */
	readonly maxOutputTokens: number;
	/** Tokens that the chat template may add; included in the upper bound of the cost. */
	readonly templateOverheadTokens: number;
	/** Unicode form to which the tokenizer converts text, which may lengthen it. `none`: no conversion. */
	readonly textNormalization: TextNormalization;
	/** True: an account's prompts never use a cache entry that another account's prompt left in a server. */
	readonly isolatePrefixes?: true;
	readonly parameters: ReadonlySet<string>;
	readonly unsupportedParameters: "ignore" | "reject_essential" | "reject";
	/** Role that servers get for `developer`. Default: `keep` if all of them have the dialect `openai`. */
	readonly developerRole?: "keep" | "system";
	/** Field of an assistant message in which servers expect the reasoning. Default: that of the servers' dialect. */
	readonly reasoningHistory?: ReasoningHistory;
	/** First day (UTC) on which the model is not served, `2027-01-31`. Undefined: no day is set. */
	readonly retiresOn?: string;
	/** Ids and tags of the accounts that can see the model. Undefined: all accounts. */
	readonly visibleTo?: readonly string[];
	/** Tokens per minute of this model that each account may use. Undefined: no limit. */
	readonly tokensPerMinute?: number;
	readonly rateCard: RateCard;
	/** Undefined if `tollgate.yaml` states no cost. */
	readonly cost?: OperatorCost;
	readonly upstreams: readonly UpstreamSpec[];
	/** Unix seconds at which this id was first in the catalogue. */
	readonly createdS: number;
}

/** A model of a file, a discovery or the demo, before its rates are stored as a rate card. */
export interface ModelSpec extends Omit<Model, "rateCard" | "createdS" | "batch"> {
	readonly rates: Rates;
	readonly batch?: { readonly rates: Rates | null };
}

export type RouteOrder = "listed" | "price" | "speed";

export interface RouteSpec {
	readonly id: string;
	readonly name: string;
	/** Ids of distinct models of the same kind, in the order of the file. */
	readonly modelIds: readonly string[];
	readonly by: RouteOrder;
}

/** A name for several models, which are tried in order. The model that answers is charged at its own rates. */
export interface Route {
	readonly id: string;
	readonly name: string;
	/** At least one model. `by` price: the cheapest is first; `by` speed: ordered at each request. */
	readonly models: readonly [Model, ...Model[]];
	readonly by: RouteOrder;
}

/** A model or route that is no longer served. */
export interface RetiredModel {
	/** First day (UTC) without the model. */
	readonly on: string;
	readonly kind: ModelKind;
}

/** The whole catalogue at one moment. Never changed, only replaced by a new snapshot. */
export interface CatalogSnapshot {
	/** Number that increases with each snapshot. */
	readonly revision: number;
	/** Models by id, in the order of the file. */
	readonly models: ReadonlyMap<string, Model>;
	/** Model id by alias. `findModel` accepts both. */
	readonly aliases: ReadonlyMap<string, string>;
	readonly routes: ReadonlyMap<string, Route>;
	/** Models and routes of the file that are no longer served, by name. */
	readonly retired: ReadonlyMap<string, RetiredModel>;
}

export function findModel(snapshot: CatalogSnapshot, name: string): Model | undefined {
	const direct = snapshot.models.get(name);
	if (direct !== undefined) return direct;
	const id = snapshot.aliases.get(name);
	return id === undefined ? undefined : snapshot.models.get(id);
}

export const unknownText = (id: string): Text => ({
	id: "The model `{id}` does not exist or is not connected: see GET /v1/models.",
	values: { id },
});

/** Error text for a request that names an unknown or retired model. */
export function notFoundText(snapshot: CatalogSnapshot, name: string): Text {
	const id = name.slice(0, 128);
	const day = snapshot.retired.get(name)?.on;
	return day === undefined
		? unknownText(id)
		: { id: "The model `{id}` was retired on {day}: see GET /v1/models.", values: { id, day } };
}
