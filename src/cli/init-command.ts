import fs from "node:fs";
import { resolve } from "node:path";
import { stringify } from "yaml";
import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { DEFAULT_CORS } from "../catalog/cors.ts";
import { checkCatalog, describeProblems } from "../catalog/file.ts";
import type { DialectName, ModelSpec, UpstreamSpec } from "../catalog/model.ts";
import { DEFAULT_LIMITS, LIMIT_FIELDS } from "../catalog/service-limits.ts";
import type { FoundServer } from "../demo/discover.ts";
import { discoverModelServers, USUAL_PORTS } from "../demo/discover.ts";
import { formatRatePerMillion } from "../money/nano-usd.ts";
import template from "./catalog-template.yaml" with { type: "text" };
import { type CommandRuns, UsageError } from "./command.ts";

const DEFAULT_FILE = "tollgate.yaml";
/** Deadline per model server, which answers slowly while it loads a model. */
const ASK_MS = 3_000;
const PORTS_MAX = 64;

export const initCommand: CommandRuns = {
	async init({ env, log }, input) {
		const path = resolve(input.optionalArgument(0) ?? DEFAULT_FILE);
		const force = input.flag("force");
		if (!force && fs.existsSync(path)) throw alreadyThere(path);
		const ports = portsOf(input.option("ports"));
		const found = await discoverModelServers({ clock: systemClock, log }, { ports, timeoutMs: ASK_MS });
		const text = formatCatalogFile({ ...found, ports });
		const check = checkCatalog(text, env);
		// The generated file may be invalid, for example if a model's name contains `${…}`.
		if (!check.ok) throw new Fault("conflict", describeProblems(check.problems));
		write(path, text, force);
		const models = found.models.map(({ id, kind, upstreams }) => ({ id, kind, urls: upstreams.map(({ url }) => url) }));
		const servers = found.servers.map(({ origin, product }) => ({ url: origin, product }));
		return { json: { file: path, models, servers }, text: summary(path, models, servers, ports) };
	},
};

function portsOf(text: string | undefined): readonly number[] {
	if (text === undefined) return USUAL_PORTS;
	const ports = text.split(",").map(Number);
	if (ports.length > PORTS_MAX || ports.some((port) => !Number.isInteger(port) || port < 1 || port > 65_535))
		throw new UsageError("--ports takes numbers from 1 to 65535, separated by commas");
	return [...new Set(ports)];
}

/** Writes the file. With `force` it atomically replaces an existing file; otherwise an existing file is an error. */
function write(path: string, text: string, force: boolean): void {
	const unfinished = `${path}.${process.pid}`;
	try {
		writeNew(force ? unfinished : path, text);
		if (force) fs.renameSync(unfinished, path);
	} catch (error) {
		if (!force && (error as NodeJS.ErrnoException).code === "EEXIST") throw alreadyThere(path);
		throw error;
	} finally {
		if (force) fs.rmSync(unfinished, { force: true });
	}
}

/** Removes a partially written file, which would block the next attempt and be read by a server. */
function writeNew(path: string, text: string): void {
	const file = fs.openSync(path, "wx");
	try {
		fs.writeFileSync(file, text, { flush: true });
	} catch (error) {
		fs.rmSync(path, { force: true });
		throw error;
	} finally {
		fs.closeSync(file);
	}
}

function alreadyThere(path: string): Fault {
	return new Fault("conflict", `${path} already exists. Use --force to replace it.`);
}

function summary(
	path: string,
	models: readonly { readonly id: string; readonly urls: readonly string[] }[],
	servers: readonly { readonly url: string; readonly product: string }[],
	ports: readonly number[],
): string {
	const productOf = (url: string) => servers.find((server) => url.startsWith(`${server.url}/`))?.product ?? "";
	const shown = models.map(({ id, urls }) => `  ${id} (${urls.map((url) => `${productOf(url)}, ${url}`).join("; ")})`);
	const none = [
		`  No model server answered on ports ${ports.join(", ")}. Add yours to the file; it contains an example.`,
	];
	return [
		`Wrote ${path} with ${models.length === 1 ? "1 model" : `${models.length} models`}:`,
		...(models.length === 0 ? none : shown),
		"",
		"Next: set your rates in the file, start `tollgate serve` in its folder, and create accounts (`tollgate help account create`).",
		"The file switches the demo off: the service starts with empty books.",
	].join("\n");
}

/** First and second part of the template: the head of every file, and an example for a file without models. */
const [HEAD = "", EXAMPLE = ""] = String(template).split("---\n");

export interface CatalogFindings {
	readonly servers: readonly FoundServer[];
	readonly models: readonly ModelSpec[];
	readonly ports: readonly number[];
}

/** Column at which comments after values start. */
const COMMENT_COLUMN = 44;
const WORDS_OF_A_LINE = /(.{1,90},) /g;

/** Formats a catalogue for the discovered servers, with comments that explain the fields. */
export function formatCatalogFile(found: CatalogFindings): string {
	const example = EXAMPLE.trim().replace("{ports}", found.ports.join(", "));
	return [
		HEAD,
		...(found.models.length === 0 ? [example] : modelList(found)),
		"",
		...limitLines(),
		"",
		CORS_LINE,
		"",
	].join("\n");
}

function modelList({ models, servers }: CatalogFindings): string[] {
	return ["models:", ...models.flatMap((model) => ["", ...modelLines(model, servers)])];
}

function modelLines(model: ModelSpec, servers: readonly FoundServer[]): string[] {
	const chat = model.kind === "chat";
	const field = (name: string, value: string, comment = "") => withComment(`    ${name}: ${value}`, comment);
	const words = (values: Iterable<string>) => `[${[...values].join(", ")}]`;
	return [
		withComment(`  - id: ${text(model.id)}`, "the id in requests; aliases: [other, names] are possible"),
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
	const field = (name: string, value: string, comment = "") => withComment(`        ${name}: ${value}`, comment);
	return [
		withComment(`      - url: ${text(upstream.url)}`, product),
		field("model", text(upstream.model), "model name at the server"),
		field("dialect", upstream.dialect),
		field("max_concurrency", String(upstream.maxConcurrency), "concurrent requests; others wait"),
		...(HINTS[upstream.dialect] ?? []),
		`        # api_key: \${MODEL_SERVER_KEY}`,
	];
}

/** Comments that the file contains about known problems of a dialect. */
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
		withComment(`#  ${name}: ${DEFAULT_LIMITS[limit] / scale}`, meaning),
	);
	return ["# Limits, with their defaults:", "#limits:", ...lines];
}

const CORS_LINE = withComment(`#cors: "${DEFAULT_CORS}"`, "origins whose pages may call /v1/: a list, or off");

function withComment(line: string, comment: string): string {
	return comment === "" ? line : `${line.padEnd(COMMENT_COLUMN - 1)} # ${comment}`;
}

/** Formats a value as YAML, with quotes only if needed. */
const text = (value: string) => stringify(value, { lineWidth: 0 }).trimEnd();

const wrapped = (words: Iterable<string>) => [...words].join(", ").replace(WORDS_OF_A_LINE, "$1\n      ");
