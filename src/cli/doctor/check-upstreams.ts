import { systemClock } from "../../base/clock.ts";
import type { ModelSpec, UpstreamSpec } from "../../catalog/model.ts";
import { familyOf } from "../../demo/discover.ts";
import { type JsonRecord, type LocalServer, localServer, recordsOf } from "../../demo/local-server.ts";
import { type Finding, findingsOf, reasonOf } from "./finding.ts";

type Found = ReturnType<typeof findingsOf>;

const ASK_MS = 8_000;
const ASKED_AT_ONCE = 16;
const REPLICAS_MAX = 500;
const NAMES_SHOWN_MAX = 5;

/** Asks every replica, in a way that generates nothing, whether it is there, has the model and speaks as it is said to. */
export async function checkUpstreams(models: readonly ModelSpec[]): Promise<readonly Finding[]> {
	const replicas = models.flatMap((model) => model.upstreams.map((upstream, place) => ({ model, upstream, place })));
	const asked = replicas.slice(0, REPLICAS_MAX);
	const findings: Finding[][] = [];
	let next = 0;
	const worker = async () => {
		for (let at = next++; at < asked.length; at = next++) {
			const { model, upstream, place } = asked[at] as (typeof asked)[number];
			findings[at] = [...(await checkReplica(model, upstream, `${model.id}#${place + 1}`))];
		}
	};
	await Promise.all(Array.from({ length: ASKED_AT_ONCE }, worker));
	const rest = findingsOf("upstreams");
	if (replicas.length > asked.length) rest.note(`${replicas.length - asked.length} more replicas were not asked`);
	if (models.length === 0)
		rest.warn(
			"the catalogue has no model: nothing is served",
			"Describe one; `tollgate init` finds those of this machine.",
		);
	return [...findings.flat(), ...rest.list];
}

async function checkReplica(model: ModelSpec, upstream: UpstreamSpec, name: string): Promise<readonly Finding[]> {
	const found = findingsOf("upstreams");
	const at = `${name} (${upstream.dialect} at ${shownUrl(upstream.url)})`;
	try {
		if (upstream.dialect === "tei") await checkInfo(upstream, at, found);
		else await checkList(model, upstream, at, found);
	} catch (error) {
		found.broken(
			`${at} does not answer: ${reasonOf(error)}`,
			"Start it, or set its url right; it must be reachable from this machine.",
		);
	}
	return found.list;
}

async function checkList(model: ModelSpec, upstream: UpstreamSpec, at: string, found: Found): Promise<void> {
	const { status, body, serverHeader } = await serverAt(upstream.url, upstream).get("/models");
	if (status === 401 || status === 403) {
		const todo = "Set its api_key right.";
		found.broken(`${at} refuses ${upstream.apiKey === null ? "us: it wants a key" : "its key"} (${status})`, todo);
		return;
	}
	const entries = recordsOf(body?.data).filter(({ id }) => typeof id === "string");
	if (status !== 200 || body === undefined) {
		found.warn(
			`${at} answers ${status} where its list of models should be`,
			"Set its url right: it ends with /v1 for most servers.",
		);
		return;
	}
	const entry = entries.find(({ id }) => isSameModel(String(id), upstream));
	if (entry === undefined && upstream.dialect !== "llama.cpp") {
		const names = entries.slice(0, NAMES_SHOWN_MAX).map(({ id }) => String(id));
		const has = names.length === 0 ? "no model at all" : names.join(", ");
		found.broken(`${at} has no model ${upstream.model}; it has ${has}`, "Set `model` to its name there, or load it.");
		return;
	}
	const before = found.list.length;
	await checkFamily(upstream, { at, entry: entry ?? {}, serverHeader }, found);
	const served = entry?.max_model_len;
	if (typeof served === "number" && served < model.contextLength)
		found.warn(
			`${at} serves ${served} tokens of context, the catalogue promises ${model.contextLength}`,
			`Set context_length to ${served}, or start it with more.`,
		);
	if (found.list.length === before) found.ok(`${at} answers and has ${upstream.model}`);
}

/** Told apart as the first run does it; what cannot be told apart is taken at its word. */
async function checkFamily(
	upstream: UpstreamSpec,
	{ at, entry, serverHeader }: { at: string; entry: JsonRecord; serverHeader: string },
	found: Found,
): Promise<void> {
	const server = serverAt(rootOf(upstream), upstream);
	const info = upstream.dialect === "tgi" ? await server.getJson("/info") : undefined;
	if (info !== undefined && typeof info.body.model_id === "string") return;
	const { dialect, product } = await familyOf(server, serverHeader, entry);
	if (dialect === upstream.dialect || dialect === "openai") return;
	found.warn(
		`${at} answers like ${product}: requests and usage of another family are read wrongly`,
		`Set dialect to ${dialect}.`,
	);
}

/** TEI serves one model and has no list. */
async function checkInfo(upstream: UpstreamSpec, at: string, found: Found): Promise<void> {
	const { status, body } = await serverAt(rootOf(upstream), upstream).get("/info");
	const served = body?.model_id;
	if (status === 401 || status === 403) found.broken(`${at} refuses us (${status})`, "Set its api_key right.");
	else if (typeof served !== "string")
		found.warn(`${at} does not say which model it serves (${status})`, "Set dialect and url right.");
	else if (served !== upstream.model)
		found.warn(`${at} serves ${served}, not ${upstream.model}`, "Set `model` to it, or start it with another.");
	else found.ok(`${at} answers and has ${served}`);
}

function isSameModel(id: string, { model, dialect }: UpstreamSpec): boolean {
	// Ollama takes a name without a tag for its newest.
	return id === model || (dialect === "ollama" && id === `${model}:latest`);
}

/** Addresses of its own stand beside `/v1`. */
function rootOf({ url }: UpstreamSpec): string {
	return url.replace(/\/v1$/, "");
}

function serverAt(origin: string, { apiKey }: UpstreamSpec): LocalServer {
	const headers: Record<string, string> = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
	return localServer(systemClock, { origin, timeoutMs: ASK_MS, headers });
}

/** An address may hold a password. */
function shownUrl(text: string): string {
	const url = new URL(text);
	return `${url.protocol}//${url.host}${url.pathname}`;
}
