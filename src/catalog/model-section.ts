import { parseIsoMs } from "../base/iso-date.ts";
import { TAG, TOKENS_PER_MINUTE_MAX } from "./account-limits.ts";
import type { ChatMode, ImageUrlPolicy, Modality, ModelKind, ModelSpec, Rates, UpstreamSpec } from "./model.ts";
import { readCost, readRates } from "./rates-section.ts";
import { whyUnsupported } from "./request-fields.ts";
import { readUpstream } from "./upstream-section.ts";
import { quoteValue, type YamlField, type YamlMap, type YamlReader } from "./yaml-reader.ts";

export const MODEL_FIELDS = [
	..."id aliases name kind modes input_modalities output_modalities image_urls context_length max_output_tokens".split(
		" ",
	),
	..."template_overhead_tokens text_normalization parameters unsupported_parameters developer_role reasoning_history".split(
		" ",
	),
	...["isolate_prefixes", "rates", "batch_rates", "cost", "retires_on", "tokens_per_minute", "visible_to", "upstreams"],
];

const MODEL_ID = /^[A-Za-z0-9._:/-]{1,128}$/;
const KINDS: readonly ModelKind[] = ["chat", "embedding", "transcription", "image", "rerank"];
const MODES: readonly (ChatMode | "batch")[] = ["chat", "completions", "batch"];
const BATCH_KINDS: ReadonlySet<ModelKind> = new Set(["chat", "embedding"]);
const MODALITIES: readonly Modality[] = ["text", "image", "audio"];
export const OUTPUT_MODALITIES: Readonly<Record<ModelKind, Modality>> = {
	chat: "text",
	embedding: "embeddings",
	transcription: "text",
	image: "image",
	rerank: "rerank",
};
const IMAGE_URL_POLICIES: readonly ImageUrlPolicy[] = ["forward", "data_only", "reject"];
const NORMALIZATIONS = ["nfkc", "none"] as const;
const UNSUPPORTED = ["reject_essential", "ignore", "reject"] as const;
const DEVELOPER_ROLES = ["keep", "system"] as const;
const REASONING_HISTORIES = ["reasoning_content", "reasoning", "omit"] as const;
const PARAMETER_NAME = /^[A-Za-z0-9_.-]{1,64}$/;

const NAME_LENGTH_MAX = 200;
const ALIASES_MAX = 32;
const PARAMETERS_MAX = 200;
const UPSTREAMS_MAX = 256;
const TOKENS_MAX = 100_000_000;
const TOKEN_LIMIT = { min: 1, max: TOKENS_PER_MINUTE_MAX, integer: true };
const VISIBLE_TO_MAX = 1_000;
const ACCOUNT_OR_TAG = new RegExp(`^acc_[0-9a-f]{32}$|${TAG.source}`);
const DAY_LENGTH = "2027-01-31".length;

const DEFAULT_TEMPLATE_OVERHEAD_TOKENS = 256;
/** Default context length for kinds other than chat, where it only bounds a small cost. Chat models must state it. */
const DEFAULT_CONTEXT_LENGTH = 8192;
const GENERATING_KINDS: ReadonlySet<ModelKind> = new Set(["chat", "transcription"]);

/** Claims a name for a model or route; reports a problem if the name is taken. */
export type ClaimName = (name: string, line: number) => void;

/** Reads one entry of `models:`. Undefined if the entry has a mistake. */
export function readModel(reader: YamlReader, field: YamlField, claim: ClaimName): ModelSpec | undefined {
	const map = reader.map(field, MODEL_FIELDS);
	if (map === undefined) return undefined;
	const id = readModelId(reader, map.require("id"), claim);
	const kind = reader.choice(map.require("kind"), KINDS);
	const claimAlias = (alias: string, { line }: YamlField) => claim(alias, line);
	const aliases = readWords(reader, map.get("aliases"), MODEL_ID, ALIASES_MAX, claimAlias);
	const name = readName(reader, map.get("name")) ?? id;
	const { modes, batches } = readModes(reader, map, kind);
	const inputs = readChoices(reader, map.get("input_modalities"), MODALITIES);
	const outputs = readChoices(reader, map.get("output_modalities"), MODALITIES);
	const imageUrls = reader.choice(map.get("image_urls"), IMAGE_URL_POLICIES) ?? "data_only";
	const lengths = readLengths(reader, map, kind);
	const textNormalization = reader.choice(map.get("text_normalization"), NORMALIZATIONS) ?? "nfkc";
	const isolatePrefixes = reader.flag(map.get("isolate_prefixes")) ?? false;
	const listed = new Map<string, YamlField>();
	readWords(reader, map.get("parameters"), PARAMETER_NAME, PARAMETERS_MAX, (word, item) => listed.set(word, item));
	const unsupportedParameters = reader.choice(map.get("unsupported_parameters"), UNSUPPORTED) ?? "reject_essential";
	const developerRole = reader.choice(map.get("developer_role"), DEVELOPER_ROLES);
	const reasoningHistory = reader.choice(map.get("reasoning_history"), REASONING_HISTORIES);
	const rates = readRates(reader, map.require("rates"), kind);
	const batchRates = readBatchRates(reader, map.get("batch_rates"), kind, batches);
	const cost = readCost(reader, map.get("cost"));
	const retiresOn = readDay(reader, map.get("retires_on"));
	const tokensPerMinute = reader.number(map.get("tokens_per_minute"), TOKEN_LIMIT);
	const visibleTo = readVisibleTo(reader, map.get("visible_to"));
	const upstreams = readUpstreams(reader, map.require("upstreams"), kind);
	if (kind !== undefined) leaveOutUnsupported(reader, kind, listed, upstreams);

	if (id === undefined || name === undefined || kind === undefined || rates === undefined) return undefined;
	return Object.freeze({
		id,
		aliases: Object.freeze(aliases),
		name,
		kind,
		modes,
		inputModalities: inputs ?? new Set<Modality>([kind === "transcription" ? "audio" : "text"]),
		outputModalities: outputs ?? new Set<Modality>([OUTPUT_MODALITIES[kind]]),
		imageUrls,
		...lengths,
		textNormalization,
		...(isolatePrefixes ? { isolatePrefixes } : {}),
		parameters: new Set(listed.keys()),
		unsupportedParameters,
		...(developerRole === undefined ? {} : { developerRole }),
		...(reasoningHistory === undefined ? {} : { reasoningHistory }),
		rates,
		...(batches ? { batch: Object.freeze({ rates: batchRates }) } : {}),
		...(cost === undefined ? {} : { cost }),
		...(retiresOn === undefined ? {} : { retiresOn }),
		...(tokensPerMinute === undefined ? {} : { tokensPerMinute }),
		...(visibleTo === undefined ? {} : { visibleTo }),
		upstreams: Object.freeze(upstreams),
	});
}

export function readModelId(reader: YamlReader, field: YamlField | undefined, claim: ClaimName): string | undefined {
	const id = reader.text(field, MODEL_ID, "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : / -");
	if (field !== undefined && id !== undefined) claim(id, field.line);
	return id;
}

export function readName(reader: YamlReader, field: YamlField | undefined): string | undefined {
	const fits = (name: string) => name.trim() !== "" && name.length <= NAME_LENGTH_MAX && !/\p{Cc}/u.test(name);
	return reader.text(field, fits, `must be 1 to ${NAME_LENGTH_MAX} characters without control characters`);
}

/** Reads a list of at least one account id or tag. */
function readVisibleTo(reader: YamlReader, field: YamlField | undefined): readonly string[] | undefined {
	if (field === undefined) return undefined;
	const names = readWords(reader, field, ACCOUNT_OR_TAG, VISIBLE_TO_MAX, () => {});
	if (names.length === 0) reader.report(field, "needs the id or tag of an account");
	return Object.freeze(names);
}

/** Reads an existing day, written without a time. */
function readDay(reader: YamlReader, field: YamlField | undefined): string | undefined {
	const fits = (day: string) => day.length === DAY_LENGTH && parseIsoMs(day) !== undefined;
	return reader.text(field, fits, (day) => `must be a day such as 2027-01-31, got ${quoteValue(day)}`);
}

/** Reads a chat model's endpoints, and whether it supports batches. */
function readModes(
	reader: YamlReader,
	map: YamlMap,
	kind: ModelKind | undefined,
): { modes: ReadonlySet<ChatMode>; batches: boolean } {
	const field = map.get("modes");
	const chosen = readChoices(reader, field, MODES);
	const batches = chosen?.has("batch") ?? false;
	const modes = new Set<ChatMode>();
	for (const mode of chosen ?? []) if (mode !== "batch") modes.add(mode);
	if (field !== undefined && kind !== undefined && kind !== "chat") {
		const alone = batches && modes.size === 0;
		if (!BATCH_KINDS.has(kind)) reader.report(field, `belongs to kind chat; a model of kind ${kind} has none`);
		else if (!alone) reader.report(field, `a model of kind ${kind} supports only the mode batch`);
	} else if (field !== undefined && batches && modes.size === 0)
		reader.report(field, "needs chat, completions or both in addition to batch");
	if (kind !== undefined && kind !== "chat") return { modes: new Set(), batches };
	return { modes: chosen === undefined ? new Set(["chat"]) : modes, batches };
}

/** Reads the rates of batch lines; null if they equal the usual rates. */
function readBatchRates(
	reader: YamlReader,
	field: YamlField | undefined,
	kind: ModelKind | undefined,
	batches: boolean,
): Rates | null {
	if (field === undefined) return null;
	if (!batches) reader.report(field, "needs batch in `modes`");
	return readRates(reader, field, kind) ?? null;
}

function readLengths(
	reader: YamlReader,
	map: YamlMap,
	kind: ModelKind | undefined,
): Pick<ModelSpec, "contextLength" | "maxOutputTokens" | "templateOverheadTokens"> {
	const needed = kind === "chat";
	const fieldOf = (name: string) => (needed ? map.require(name) : map.get(name));
	const outputField = fieldOf("max_output_tokens");
	const bounds = { min: 1, max: TOKENS_MAX, integer: true };
	const context = reader.number(fieldOf("context_length"), bounds);
	const output = reader.number(outputField, bounds);
	const overhead = reader.number(map.get("template_overhead_tokens"), { ...bounds, min: 0 });
	const generates = kind === undefined || GENERATING_KINDS.has(kind);
	if (outputField && !generates) reader.report(outputField, `a model of kind ${kind} generates no tokens`);
	if (outputField && context !== undefined && output !== undefined && generates && output > context) {
		reader.report(outputField, `must not be greater than context_length (${context})`);
	}
	const contextLength = context ?? DEFAULT_CONTEXT_LENGTH;
	return {
		contextLength,
		maxOutputTokens: generates ? (output ?? contextLength) : 0,
		templateOverheadTokens: overhead ?? DEFAULT_TEMPLATE_OVERHEAD_TOKENS,
	};
}

function readUpstreams(reader: YamlReader, field: YamlField | undefined, kind: ModelKind | undefined) {
	const items = reader.list(field, UPSTREAMS_MAX);
	if (field === undefined || items === undefined) return [];
	if (items.length === 0) reader.report(field, "needs at least one entry");
	const upstreams: UpstreamSpec[] = [];
	const seen = new Map<string, number>();
	for (const item of items) {
		const upstream = readUpstream(reader, item, kind);
		if (upstream === undefined) continue;
		const key = JSON.stringify([upstream.url, upstream.model]);
		const earlier = seen.get(key);
		// The same server must not be listed twice, because it would get twice its `max_concurrency`.
		if (earlier !== undefined) reader.report(item, `the same url and model as in line ${earlier}`);
		else seen.set(key, item.line);
		upstreams.push(upstream);
	}
	return upstreams;
}

/** Removes parameters that a dialect of the model's servers does not support, because any server may get a request. */
function leaveOutUnsupported(
	reader: YamlReader,
	kind: ModelKind,
	parameters: Map<string, YamlField>,
	upstreams: readonly UpstreamSpec[],
): void {
	for (const [parameter, item] of parameters) {
		for (const dialect of new Set(upstreams.map((upstream) => upstream.dialect))) {
			const why = whyUnsupported(dialect, kind, parameter);
			if (why === undefined) continue;
			parameters.delete(parameter);
			reader.warn(item, `${quoteValue(parameter)} is ignored because dialect ${dialect} does not support it: ${why}`);
		}
	}
}

/** Reads a list of distinct words; empty if absent. Calls `accept` for each valid word. */
function readWords(
	reader: YamlReader,
	field: YamlField | undefined,
	pattern: RegExp,
	itemsMax: number,
	accept: (word: string, item: YamlField) => void,
): string[] {
	const words = new Set<string>();
	for (const item of reader.list(field, itemsMax) ?? []) {
		const word = reader.text(item);
		if (word === undefined) continue;
		if (!pattern.test(word)) reader.report(item, `must match ${pattern.source}`);
		else if (words.has(word)) reader.report(item, `${quoteValue(word)} is listed twice`);
		else accept(word, item);
		words.add(word);
	}
	return [...words];
}

/** Reads a list of at least one word out of `options`, without duplicates. */
function readChoices<T extends string>(
	reader: YamlReader,
	field: YamlField | undefined,
	options: readonly T[],
): ReadonlySet<T> | undefined {
	const items = reader.list(field, options.length);
	if (field === undefined || items === undefined) return undefined;
	if (items.length === 0) reader.report(field, `needs at least one of ${options.join(", ")}`);
	const chosen = new Set<T>();
	for (const item of items) {
		const word = reader.choice(item, options);
		if (word !== undefined && chosen.has(word)) reader.report(item, `${quoteValue(word)} is listed twice`);
		if (word !== undefined) chosen.add(word);
	}
	return chosen;
}
