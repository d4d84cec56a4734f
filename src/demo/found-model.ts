import { assert } from "../base/assert.ts";
import type { ChatMode, DialectName, Modality, ModelKind, ModelSpec } from "../catalog/model.ts";
import { OUTPUT_MODALITIES } from "../catalog/model-section.ts";
import { type PicoUsdPerUnit, parseRatePerMillion, ZERO_USD } from "../money/nano-usd.ts";
import { asRecord, asRecords, type JsonRecord, type LocalServer } from "./local-server.ts";

export type ModelDetails = Pick<FoundModel, "kind" | "contextLength" | "maxOutputTokens" | "images">;

/** Assumed if a server reports no context length: the smallest of common models, so that it is never too large. */
const CONTEXT_LENGTH_UNKNOWN = 4096;
const CONTEXT_LENGTH_MAX = 10_000_000;
/** Most output tokens. A higher limit would reserve much credit for answers that are rarely so long. */
const MAX_OUTPUT_TOKENS = 8192;
/** Matches names of embedding models, for servers that do not report a model's kind. */
const EMBEDDING_NAME = /embed|(^|[/-])(bge|gte|e5)-/i;

interface Said {
	readonly contextLength?: number | undefined;
	readonly embedding?: boolean;
	readonly images?: boolean;
}

/** Reads details of a server's model. vLLM and SGLang have them in the list of models, others at other endpoints. */
export async function readModelDetails(server: LocalServer, product: string, entry: JsonRecord): Promise<ModelDetails> {
	const listed = tokens(entry.max_model_len) ?? tokens(asRecord(entry.meta).n_ctx_train);
	const said = await askServer(server, product, String(entry.id)).catch((): Said => ({}));
	const contextLength = said.contextLength ?? listed ?? CONTEXT_LENGTH_UNKNOWN;
	const embedding = said.embedding ?? EMBEDDING_NAME.test(String(entry.id));
	return {
		kind: embedding ? "embedding" : "chat",
		contextLength,
		maxOutputTokens: Math.min(contextLength, MAX_OUTPUT_TOKENS),
		images: said.images === true && !embedding,
	};
}

async function askServer(server: LocalServer, product: string, model: string): Promise<Said> {
	if (product === "Ollama") return askOllama(server, model);
	if (product === "LM Studio") return askLmStudio(server, model);
	if (product === "llama.cpp") return askLlamaCpp(server);
	return {};
}

/** `model_info` names the length after the architecture, such as `llama.context_length`. */
async function askOllama(server: LocalServer, model: string): Promise<Said> {
	const shown = (await server.postJson("/api/show", { model }))?.body ?? {};
	const info = asRecord(shown.model_info);
	const name = Object.keys(info).find((key) => key.endsWith(".context_length"));
	const capabilities = Array.isArray(shown.capabilities) ? shown.capabilities : undefined;
	return {
		contextLength: name === undefined ? undefined : tokens(info[name]),
		...(capabilities === undefined ? {} : { embedding: !capabilities.includes("completion") }),
		images: capabilities?.includes("vision") ?? false,
	};
}

async function askLmStudio(server: LocalServer, model: string): Promise<Said> {
	const list = asRecords((await server.getJson("/api/v0/models"))?.body.data);
	const entry = list.find(({ id }) => id === model) ?? {};
	return {
		contextLength: tokens(entry.loaded_context_length) ?? tokens(entry.max_context_length),
		...(typeof entry.type === "string" ? { embedding: entry.type === "embeddings" } : {}),
		images: entry.type === "vlm",
	};
}

/** Returns the context length with which the server was started, which may be shorter than the model's. */
async function askLlamaCpp(server: LocalServer): Promise<Said> {
	const props = (await server.getJson("/props"))?.body ?? {};
	const settings = asRecord(props.default_generation_settings);
	return {
		contextLength: tokens(settings.n_ctx) ?? tokens(props.n_ctx),
		images: asRecord(props.modalities).vision === true,
	};
}

function tokens(value: unknown): number | undefined {
	return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= CONTEXT_LENGTH_MAX
		? (value as number)
		: undefined;
}

export interface FoundModel {
	readonly id: string;
	readonly name: string;
	readonly kind: Extract<ModelKind, "chat" | "embedding">;
	readonly modes: readonly ChatMode[];
	readonly contextLength: number;
	readonly maxOutputTokens: number;
	/** True if prompts may contain images. */
	readonly images?: boolean;
	readonly parameters: readonly string[];
	readonly upstream: { readonly url: string; readonly model: string; readonly dialect: DialectName };
}

/** Cost of tokens of the demo's models to the operator, in USD per million tokens. */
const DEMO_COST = { input: "0.09", output: "0.27" } as const;

/** Rates of all demo models in USD per million tokens, charged in play money. */
export const DEMO_RATES = { input: "0.20", output: "0.60" } as const;

const TEMPLATE_OVERHEAD_TOKENS = 256;
/** Most concurrent requests to a server: a desktop machine serves few. Further requests wait in the gateway. */
const MAX_CONCURRENCY = 64;

export function demoModelSpec(found: FoundModel): ModelSpec {
	const { id, name, kind, contextLength, upstream } = found;
	const input = rate(DEMO_RATES.input);
	const zero = 0 as PicoUsdPerUnit;
	const output = kind === "chat" ? rate(DEMO_RATES.output) : zero;
	return Object.freeze({
		id,
		aliases: Object.freeze([]),
		name,
		kind,
		modes: new Set(kind === "chat" ? found.modes : []),
		inputModalities: new Set<Modality>(found.images === true ? ["text", "image"] : ["text"]),
		outputModalities: new Set([OUTPUT_MODALITIES[kind]]),
		imageUrls: "data_only",
		contextLength,
		maxOutputTokens: kind === "chat" ? Math.min(found.maxOutputTokens, contextLength) : 0,
		templateOverheadTokens: TEMPLATE_OVERHEAD_TOKENS,
		textNormalization: "nfkc",
		parameters: new Set(found.parameters),
		unsupportedParameters: "reject_essential",
		rates: { input, cachedInput: input, output, request: zero, image: zero, audioSecond: zero, search: zero },
		cost: { replicaHour: ZERO_USD, input: rate(DEMO_COST.input), output: rate(DEMO_COST.output) },
		upstreams: Object.freeze([
			Object.freeze({ ...upstream, apiKey: null, maxConcurrency: MAX_CONCURRENCY, keepAlive: true }),
		]),
	});
}

function rate(text: string): PicoUsdPerUnit {
	const pico = parseRatePerMillion(text);
	assert(pico !== undefined, `${text} is a rate`);
	return pico;
}
