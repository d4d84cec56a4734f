import fs from "node:fs";
import { systemClock } from "../../base/clock.ts";
import { CatalogFileError, parseCatalogFile } from "../../catalog/file.ts";
import type { ModelSpec, UpstreamSpec } from "../../catalog/model.ts";
import type { Config } from "../../config.ts";
import { detectDialect } from "../../demo/discover.ts";
import { asRecords, type LocalServer, localServer } from "../../demo/local-server.ts";
import { createFindings, errorReason, type Finding, type Findings } from "./finding.ts";

const ASK_MS = 8_000;
const ASKED_AT_ONCE = 16;
const NAMES_SHOWN_MAX = 5;

/** Reads the catalogue, and requests the list of models from every replica. Generates no tokens. */
export async function checkUpstreams(config: Pick<Config, "configPath" | "demo" | "env">): Promise<readonly Finding[]> {
	const found = createFindings("upstreams");
	const models = readModels(config, found);
	if (models?.length === 0)
		found.warn("the catalogue has no model", "`tollgate init` finds model servers on this machine.");
	const replicas = (models ?? []).flatMap((model) =>
		model.upstreams.map((upstream, place) => ({ model, upstream, name: `${model.id}#${place + 1}` })),
	);
	for (let at = 0; at < replicas.length; at += ASKED_AT_ONCE)
		await Promise.all(replicas.slice(at, at + ASKED_AT_ONCE).map((one) => checkReplica(one, found)));
	return found.list;
}

/** Returns the catalogue's models; undefined if the catalogue is invalid. */
function readModels({ configPath, demo, env }: Pick<Config, "configPath" | "demo" | "env">, found: Findings) {
	if (configPath === null) {
		if (demo) found.note("there is no catalogue: the demo uses the model servers of this machine");
		else found.warn("there is no catalogue, so no model is served", "`tollgate init` writes one, or set CONFIG.");
		return undefined;
	}
	const at = (line: number) => (line === 0 ? configPath : `${configPath}:${line}`);
	try {
		const { models, warnings } = parseCatalogFile(fs.readFileSync(configPath, "utf8"), env);
		for (const { line, message } of warnings) found.note(`${at(line)}: ${message}`);
		return models;
	} catch (error) {
		if (error instanceof CatalogFileError)
			for (const { line, message } of error.problems)
				found.broken(`${at(line)}: ${message}`, "Correct the file, then run `tollgate catalog check`.");
		else
			found.broken(
				`${configPath} cannot be read: ${errorReason(error)}`,
				"Set CONFIG to a file that this user can read.",
			);
		return undefined;
	}
}

interface Asked {
	readonly model: ModelSpec;
	readonly upstream: UpstreamSpec;
	readonly name: string;
}

async function checkReplica({ model, upstream, name }: Asked, found: Findings): Promise<void> {
	const at = `${name} (${upstream.dialect} at ${shownUrl(upstream.url)})`;
	const isTei = upstream.dialect === "tei";
	try {
		const server = serverAt(upstream, isTei ? rootOf(upstream) : upstream.url);
		const { status, body, serverHeader } = await server.get(isTei ? "/info" : "/models");
		if (status === 401 || status === 403) {
			const key = upstream.apiKey === null ? "requests without a key" : "its key";
			return found.broken(`${at} refuses ${key} (${status})`, "Correct its api_key.");
		}
		// TEI (Text Embeddings Inference) has no list of models: a server has one model.
		const entries = isTei ? [{ id: body?.model_id }] : asRecords(body?.data);
		const listed = entries.filter(({ id }) => typeof id === "string");
		if (status !== 200 || body === undefined || (isTei && listed.length === 0))
			return found.warn(
				`${at} does not list its models (${status})`,
				"Correct its url: for most servers it ends with /v1.",
			);
		const entry = listed.find(({ id }) => isSameModel(String(id), upstream));
		if (entry === undefined && upstream.dialect !== "llama.cpp") {
			const has = listed.slice(0, NAMES_SHOWN_MAX).map(({ id }) => String(id));
			const names = has.length === 0 ? "no model" : has.join(", ");
			return found.broken(
				`${at} has no model ${upstream.model}; it has ${names}`,
				"Set `model` to the name of the model at the server, or load the model.",
			);
		}
		const problems = found.list.length;
		if (!isTei) await checkFamily(upstream, { at, entry: entry ?? {}, serverHeader }, found);
		const served = (entry as { max_model_len?: unknown } | undefined)?.max_model_len;
		if (typeof served === "number" && served < model.contextLength)
			found.warn(
				`${at} serves ${served} tokens of context, the catalogue states ${model.contextLength}`,
				`Set context_length to ${served}, or start the server with more.`,
			);
		if (found.list.length === problems) found.ok(`${at} answers and has ${upstream.model}`);
	} catch (error) {
		found.broken(`${at} does not answer: ${errorReason(error)}`, "Start the server, or correct its url.");
	}
}

/** Checks the configured dialect: with a wrong one the gateway misreads the server's answers and usage. */
async function checkFamily(
	upstream: UpstreamSpec,
	answer: { at: string; entry: Readonly<Record<string, unknown>>; serverHeader: string },
	found: Findings,
): Promise<void> {
	const server = serverAt(upstream, rootOf(upstream));
	if (upstream.dialect === "tgi" && (await server.getJson("/info")) !== undefined) return;
	const { dialect, product } = await detectDialect(server, answer.serverHeader, answer.entry);
	if (dialect !== upstream.dialect && dialect !== "openai")
		found.warn(`${answer.at} looks like ${product}`, `Set dialect to ${dialect}: otherwise usage is misread.`);
}

/** Ollama treats a name without a tag as `name:latest`. */
function isSameModel(id: string, { model, dialect }: UpstreamSpec): boolean {
	return id === model || (dialect === "ollama" && id === `${model}:latest`);
}

const rootOf = ({ url }: UpstreamSpec): string => url.replace(/\/v1$/, "");

function serverAt({ apiKey }: UpstreamSpec, origin: string): LocalServer {
	const headers: Record<string, string> = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
	return localServer(systemClock, { origin, timeoutMs: ASK_MS, headers });
}

function shownUrl(text: string): string {
	const { protocol, host, pathname } = new URL(text);
	return `${protocol}//${host}${pathname}`;
}
