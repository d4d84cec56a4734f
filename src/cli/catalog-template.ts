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
		beside(`  - id: ${text(model.id)}`, "what requests name; aliases: [other, names] may stand beside it"),
		...(model.name === model.id ? [] : [field("name", text(model.name), "for people")]),
		field("kind", model.kind),
		...(chat ? [field("modes", words(model.modes), "endpoints: chat, completions")] : []),
		...(model.inputModalities.has("image") ? [field("input_modalities", words(model.inputModalities))] : []),
		field("context_length", String(model.contextLength), "tokens, as far as the server said"),
		...(chat
			? [field("max_output_tokens", String(model.maxOutputTokens), "the most of an answer; it is reserved")]
			: []),
		"    # Optional fields of requests that the server honours; what is not listed is left out of requests.",
		`    parameters: [${wrapped(model.parameters)}]`,
		"    # USD per million tokens. These are the demo's: put your own.",
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
		field("model", text(upstream.model), "its name there"),
		field("dialect", upstream.dialect),
		field("max_concurrency", String(upstream.maxConcurrency), "requests that it gets at once; others wait"),
		...(HINTS[upstream.dialect] ?? []),
		`        # api_key: \${MODEL_SERVER_KEY}`,
	];
}

/** Known problems of dialects. */
const HINTS: Readonly<Partial<Record<DialectName, readonly string[]>>> = {
	vllm: [
		"        # It closes idle connections after 5 s; true once VLLM_HTTP_TIMEOUT_KEEP_ALIVE is raised.",
		"        keep_alive: false",
	],
	ollama: [
		"        # It cuts longer prompts in silence: start it with OLLAMA_CONTEXT_LENGTH at context_length or above.",
	],
	"llama.cpp": ["        # Each of its slots (-np) has a part of its context (-c)."],
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
