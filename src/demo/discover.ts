/**
 * Finds model servers on the usual ports of this machine, for a first run without a catalogue. Sends requests to
 * loopback addresses only, which generate no tokens. Skips servers that need a key or are still loading.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { DialectName, ModelSpec } from "../catalog/model.ts";
import { demoModelSpec, type FoundModel, readModelDetails } from "./found-model.ts";
import { asRecords, type JsonRecord, type LocalServer, localServer } from "./local-server.ts";

/** Default ports of vLLM and llama.cpp, llama.cpp, Ollama, LM Studio, SGLang. */
export const USUAL_PORTS: readonly number[] = [8000, 8080, 11434, 1234, 30000];

export interface FoundServer {
	/** For example `http://127.0.0.1:11434`. */
	readonly origin: string;
	readonly dialect: DialectName;
	readonly product: string;
	readonly models: readonly FoundModel[];
}

const MODELS_PER_SERVER_MAX = 50;
const MODEL_ID_CHARS_MAX = 128;

/** Returns all servers that answer in time, in the order of `ports`. If several serve one model, the first is used. */
export async function discoverModelServers(
	deps: { clock: Clock; log: Log },
	options: { ports: readonly number[]; timeoutMs: number },
): Promise<{ servers: FoundServer[]; models: ModelSpec[] }> {
	const asked = options.ports.map(async (port) => {
		const origin = `http://127.0.0.1:${port}`;
		try {
			return await identify(localServer(deps.clock, { origin, timeoutMs: options.timeoutMs }));
		} catch (error) {
			deps.log.debug("no model server", { origin, error });
			return undefined;
		}
	});
	const servers = (await Promise.all(asked))
		.filter((server) => server !== undefined)
		.filter(({ models }) => models.length > 0);
	const models = new Map<string, ModelSpec>();
	for (const found of servers.flatMap((server) => server.models))
		if (!models.has(found.id)) models.set(found.id, demoModelSpec(found));
	return { servers, models: [...models.values()] };
}

async function identify(server: LocalServer): Promise<FoundServer | undefined> {
	const list = await server.getJson("/v1/models");
	const entries = asRecords(list?.body.data).filter(({ id }) => typeof id === "string" && id !== "");
	const first = entries[0];
	if (list === undefined || first === undefined) return undefined;
	const { dialect, product } = await detectDialect(server, list.serverHeader, first);
	const shown = entries.slice(0, MODELS_PER_SERVER_MAX);
	const models = await Promise.all(shown.map((entry) => describe(server, dialect, product, entry)));
	return { origin: server.origin, dialect, product, models };
}

/**
 * Detects a server's dialect from an entry of its list of models. Ollama is tested last: it is recognized only by its
 * version endpoint, which other servers may have too.
 */
export async function detectDialect(
	server: LocalServer,
	serverHeader: string,
	entry: JsonRecord,
): Promise<{ dialect: DialectName; product: string }> {
	if (serverHeader.startsWith("llama.cpp") || entry.owned_by === "llamacpp")
		return { dialect: "llama.cpp", product: "llama.cpp" };
	if (entry.owned_by === "vllm") return { dialect: "vllm", product: "vLLM" };
	if (entry.owned_by === "sglang") return { dialect: "sglang", product: "SGLang" };
	const version = await server.getJson("/api/version");
	if (typeof version?.body.version === "string") return { dialect: "ollama", product: "Ollama" };
	if ((await server.getJson("/api/v0/models")) !== undefined) return { dialect: "openai", product: "LM Studio" };
	return { dialect: "openai", product: "an OpenAI-compatible server" };
}

async function describe(
	server: LocalServer,
	dialect: DialectName,
	product: string,
	entry: JsonRecord,
): Promise<FoundModel> {
	const served = String(entry.id);
	const details = await readModelDetails(server, product, entry);
	return {
		id: modelId(served),
		name: modelId(served),
		...details,
		parameters: details.kind === "chat" ? PARAMETERS[dialect] : ["dimensions", "encoding_format"],
		modes: dialect === "openai" ? ["chat"] : ["chat", "completions"],
		upstream: { url: `${server.origin}/v1`, model: served, dialect },
	};
}

const COMMON =
	"temperature top_p max_tokens max_completion_tokens stop seed frequency_penalty presence_penalty tools tool_choice response_format";
const LLAMA_CPP = `${COMMON} logprobs top_logprobs logit_bias parallel_tool_calls top_k min_p ignore_eos chat_template_kwargs`;
const SGLANG = `${LLAMA_CPP} n repetition_penalty reasoning_effort min_tokens echo continue_final_message response_format.structural_tag`;

/** Parameters that servers of a dialect support; without those that they silently ignore. */
const PARAMETERS: Readonly<Record<DialectName, readonly string[]>> = {
	openai: COMMON.split(" "),
	vllm: `${SGLANG} add_generation_prompt`.split(" "),
	sglang: SGLANG.split(" "),
	// Without `echo`, because llama.cpp returns no logprobs for prompts.
	"llama.cpp": LLAMA_CPP.split(" "),
	ollama: COMMON.replace(" tool_choice", "").split(" "),
	tgi: COMMON.split(" "),
	tei: [],
};

/** Makes a model's id from its name on the server, without folder, file extension and forbidden characters. */
function modelId(served: string): string {
	const bare = /^(\/|[A-Za-z]:\\|\.)|\.gguf$/.test(served)
		? (served.split(/[/\\]/).at(-1) ?? served).replace(/\.gguf$/, "")
		: served;
	const id = bare.replace(/[^A-Za-z0-9._:/-]/g, "-").slice(0, MODEL_ID_CHARS_MAX);
	return id === "" ? "model" : id;
}
