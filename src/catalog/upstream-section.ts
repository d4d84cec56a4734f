import type { DialectName, ModelKind, UpstreamSpec } from "./model.ts";
import type { YamlField, YamlReader } from "./yaml-reader.ts";

export const UPSTREAM_FIELDS = [
	"url",
	"api_key",
	"model",
	"dialect",
	"max_concurrency",
	"keep_alive",
	"reasoning_tokens",
] as const;

/** Kinds of models that servers of each dialect support. `openai`: any server with OpenAI's interface. */
const KINDS_OF_DIALECT: Readonly<Record<DialectName, readonly ModelKind[]>> = {
	openai: ["chat", "embedding", "transcription", "image", "rerank"],
	vllm: ["chat", "embedding", "transcription", "image", "rerank"],
	sglang: ["chat", "embedding", "transcription", "image", "rerank"],
	"llama.cpp": ["chat", "embedding", "transcription", "rerank"],
	ollama: ["chat", "embedding", "image"],
	tgi: ["chat"],
	tei: ["embedding", "rerank"],
};
const DIALECTS = Object.keys(KINDS_OF_DIALECT) as readonly DialectName[];

const DEFAULT_MAX_CONCURRENCY = 256;
const MAX_CONCURRENCY_MAX = 65_536;
const URL_LENGTH_MAX = 2048;
const API_KEY_LENGTH_MAX = 8192;
const MODEL_NAME_LENGTH_MAX = 512;

export function readUpstream(
	reader: YamlReader,
	field: YamlField,
	kind: ModelKind | undefined,
): UpstreamSpec | undefined {
	const map = reader.map(field, UPSTREAM_FIELDS);
	if (map === undefined) return undefined;
	const dialectField = map.require("dialect");
	const url = readUrl(reader, map.require("url"));
	const apiKey = readApiKey(reader, map.get("api_key"));
	const model = readModelName(reader, map.require("model"));
	const dialect = reader.choice(dialectField, DIALECTS);
	if (dialectField && dialect && kind && !KINDS_OF_DIALECT[dialect].includes(kind))
		reader.report(dialectField, `a ${dialect} server cannot serve a model of kind ${kind}`);
	const concurrencyBounds = { min: 1, max: MAX_CONCURRENCY_MAX, integer: true };
	const maxConcurrency = reader.number(map.get("max_concurrency"), concurrencyBounds) ?? DEFAULT_MAX_CONCURRENCY;
	const keepAlive = reader.flag(map.get("keep_alive")) ?? true;
	const reasoningTokens = reader.choice(map.get("reasoning_tokens"), ["inside", "beside"]) ?? "inside";
	if (url === undefined || model === undefined || dialect === undefined) return undefined;
	return Object.freeze({ url, apiKey, model, dialect, maxConcurrency, keepAlive, reasoningTokens });
}

/** Error messages never repeat the URL, which may contain a password. */
function readUrl(reader: YamlReader, field: YamlField | undefined): string | undefined {
	const text = reader.text(field);
	if (field === undefined || text === undefined) return undefined;
	const complain = (message: string) => {
		reader.report(field, message);
		return undefined;
	};
	if (text.length > URL_LENGTH_MAX) return complain(`is longer than ${URL_LENGTH_MAX} characters`);
	const url = URL.parse(text);
	if (url === null) return complain("is not a URL; write it as http://host:port/v1");
	if (url.protocol !== "http:" && url.protocol !== "https:") return complain("must begin with http:// or https://");
	if (url.username !== "" || url.password !== "")
		return complain("must not contain a user name or password; use api_key");
	if (text.includes("#")) return complain("must not have a fragment (#…)");
	if (text.includes("?")) return complain("must not have a query (?…)");
	return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Null without a value, because an empty variable means a server without a key. */
function readApiKey(reader: YamlReader, field: YamlField | undefined): string | null {
	const rule = `must be at most ${API_KEY_LENGTH_MAX} printable ASCII characters without spaces or line ends`;
	const text = reader.text(field, (key) => key.length <= API_KEY_LENGTH_MAX && /^[\x21-\x7e]*$/.test(key), rule);
	return text || null;
}

function readModelName(reader: YamlReader, field: YamlField | undefined): string | undefined {
	const fits = (text: string) => text !== "" && text.length <= MODEL_NAME_LENGTH_MAX && !/\p{Cc}/u.test(text);
	const rule = `must be a name of 1 to ${MODEL_NAME_LENGTH_MAX} characters without control characters`;
	return reader.text(field, fits, rule);
}
