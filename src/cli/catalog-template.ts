import { stringify } from "yaml";
import type { DialectName, ModelSpec, UpstreamSpec } from "../catalog/model.ts";
import { DEFAULT_LIMITS, LIMIT_FIELDS } from "../catalog/service-limits.ts";
import type { FoundServer } from "../demo/discover.ts";
import { formatRatePerMillion } from "../money/nano-usd.ts";
import template from "./catalog-template.yaml" with { type: "text" };

/** The head of every file, and an example for one without a model. */
const [HEAD = "", EXAMPLE = ""] = String(template).split("---\n");

/** The contents of a new `tollgate.yaml`. */
export interface CatalogFindings {
	readonly servers: readonly FoundServer[];
	readonly models: readonly ModelSpec[];
	/** The local ports that were probed. */
	readonly ports: readonly number[];
}

/** The column where trailing comments begin. */
const COMMENT_COLUMN = 44;
const WORDS_OF_A_LINE = /(.{1,90},) /g;

/** Writes a catalogue that serves the servers found, with comments for a first reader. */
export function formatCatalogFile(found: CatalogFindings): string {
	const example = EXAMPLE.trim().replace("{ports}", found.ports.join(", "));
	return [HEAD, ...(found.models.length === 0 ? [example] : modelList(found)), "", ...limitLines(), ""].join("\n");
}

function modelList({ models, servers }: CatalogFindings): string[] {
	return ["models:", ...models.flatMap((model) => ["", ...modelLines(model, servers)])];
}

function modelLines(model: ModelSpec, servers: readonly FoundServer[]): string[] {
	const chat = model.kind === "chat";
	const field = (name: string, value: string, comment = "") => beside(`    ${name}: ${value}`, comment);
	const words = (values: Iterable<string>) => `[${[...values].join(", ")}]`;
	return [
		beside(`  - id: ${text(model.id)}`, "the id in requests; aliases: [other, names] are possible"),
		...(model.name === model.id ? [] : [field("name", text(model.name), "display name")]),
		field("kind", model.kind),
		...(chat ? [field("modes", words(model.modes), "endpoints: chat, completions")] : []),
		...(model.inputModalities.has("image") ? [field("input_modalities", words(model.inputModalities))] : []),
		field("context_length", String(model.contextLength), "tokens, as reported by the server"),
		...(chat
			? [field("max_output_tokens", String(model.maxOutputTokens), "longest answer; its cost is reserved")]
			: []),
		"    # Optional request fields that the server honours; other fields are removed from requests.",
		`    parameters: [${wrapped(model.parameters)}]`,
		"    # USD per million tokens. These are the demo's rates: set your own.",
		`    rates: ${rateList(model)}`,
		"    upstreams:",
		...model.upstreams.flatMap((upstream) => upstreamLines(upstream, servers)),
	];
}

function rateList({ rates, kind }: ModelSpec): string {
	const listed = [["input", rates.input], ...(kind === "chat" ? [["output", rates.output]] : [])] as const;
	return `{ ${listed.map(([name, rate]) => `${name}: "${formatRatePerMillion(rate as typeof rates.input)}"`).join(", ")} }`;
}

function upstreamLines(upstream: UpstreamSpec, servers: readonly FoundServer[]): string[] {
	const product = servers.find(({ origin }) => upstream.url.startsWith(`${origin}/`))?.product ?? "";
	const field = (name: string, value: string, comment = "") => beside(`        ${name}: ${value}`, comment);
	return [
		beside(`      - url: ${text(upstream.url)}`, product),
		field("model", text(upstream.model), "model name at the server"),
		field("dialect", upstream.dialect),
		field("max_concurrency", String(upstream.maxConcurrency), "concurrent requests; others wait"),
		...(HINTS[upstream.dialect] ?? []),
		`        # api_key: \${MODEL_SERVER_KEY}`,
	];
}

/** Known problems of dialects. */
const HINTS: Readonly<Partial<Record<DialectName, readonly string[]>>> = {
	vllm: [
		"        # vLLM closes idle connections after 5 s. Set true once VLLM_HTTP_TIMEOUT_KEEP_ALIVE is raised.",
		"        keep_alive: false",
	],
	ollama: [
		"        # Ollama truncates longer prompts silently. Start it with OLLAMA_CONTEXT_LENGTH of at least context_length.",
	],
	"llama.cpp": ["        # Each slot (-np) of llama.cpp gets a part of the context (-c)."],
};

function limitLines(): string[] {
	const lines = LIMIT_FIELDS.map(({ name, limit, scale, meaning }) =>
		beside(`#  ${name}: ${DEFAULT_LIMITS[limit] / scale}`, meaning),
	);
	return ["# Limits, with their defaults:", "#limits:", ...lines];
}

function beside(line: string, comment: string): string {
	return comment === "" ? line : `${line.padEnd(COMMENT_COLUMN - 1)} # ${comment}`;
}

/** A value as YAML, in quotes only if it needs them. */
const text = (value: string) => stringify(value, { lineWidth: 0 }).trimEnd();

/** The list goes on in further lines, indented like a value. */
const wrapped = (words: Iterable<string>) => [...words].join(", ").replace(WORDS_OF_A_LINE, "$1\n      ");
