import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { discoverModelServers } from "../../src/demo/discover.ts";
import { jsonServer } from "../support/at-end.ts";

const list = (...data: unknown[]) => ({ object: "list", data });
const look = (ports: number[], timeoutMs = 2000) =>
	discoverModelServers({ clock: systemClock, log: silentLog }, { ports, timeoutMs });

async function only(port: number) {
	const { servers, models } = await look([port]);
	expect(servers).toHaveLength(1);
	return { server: servers[0], model: models[0], upstream: models[0]?.upstreams[0], models };
}

test.each([
	["vLLM", { id: "Qwen/Qwen3-8B", owned_by: "vllm", max_model_len: 32768 }, "Qwen/Qwen3-8B", "vllm", 32768, 8192],
	["SGLang", { id: "m", owned_by: "sglang", max_model_len: 2048 }, "m", "sglang", 2048, 2048],
	["a server of the OpenAI format", { id: "some model!", owned_by: "me" }, "some-model-", "openai", 4096, 4096],
] as const)(
	"the search for servers recognises %s by its list of models",
	async (_, listed, id, dialect, contextLength, maxOutputTokens) => {
		const port = jsonServer({ "/v1/models": list(listed) });
		const { model, upstream } = await only(port);
		expect(model).toMatchObject({ id, kind: "chat", contextLength, maxOutputTokens });
		expect(model?.modes).toEqual(new Set(["chat", ...(dialect === "openai" ? [] : ["completions" as const])]));
		expect(upstream).toMatchObject({ url: `http://127.0.0.1:${port}/v1`, model: listed.id, dialect });
	},
);

test("the search for servers finds llama.cpp by its header; the file names its model", async () => {
	const port = jsonServer(
		{
			"/v1/models": list({ id: "/srv/models/tiny.Q4_K_M.gguf", meta: { n_ctx_train: 131072 } }),
			"/props": { default_generation_settings: { n_ctx: 4096 }, modalities: { vision: true } },
		},
		{ server: "llama.cpp" },
	);
	const { model, upstream } = await only(port);
	expect(upstream).toMatchObject({ dialect: "llama.cpp", model: "/srv/models/tiny.Q4_K_M.gguf" });
	expect(model).toMatchObject({ id: "tiny.Q4_K_M", contextLength: 4096 });
	expect(model?.inputModalities).toEqual(new Set(["text", "image"]));
});

test("the search for servers finds Ollama by its version, including embedding models", async () => {
	let asked = 0;
	const port = jsonServer({
		"/v1/models": list({ id: "llama3.2:3b", owned_by: "library" }, { id: "nomic-embed-text:latest" }),
		"/api/version": { version: "0.12.0" },
		"/api/show": () =>
			Response.json(
				asked++ === 0
					? { model_info: { "llama.context_length": 131072 }, capabilities: ["completion", "tools"] }
					: { model_info: { "nomic-bert.context_length": 2048 }, capabilities: ["embedding"] },
			),
	});
	const { models, upstream } = await only(port);
	expect(upstream?.dialect).toBe("ollama");
	expect(models.map(({ kind }) => kind).sort()).toEqual(["chat", "embedding"]);
	expect(models.map(({ contextLength }) => contextLength).sort()).toEqual([131072, 2048]);
	const embedding = models.find(({ kind }) => kind === "embedding");
	expect(embedding).toMatchObject({ maxOutputTokens: 0, modes: new Set(), rates: { output: 0 } });
});

test("the search for servers knows LM Studio's format and marks its embedding models", async () => {
	const port = jsonServer({
		"/v1/models": list({ id: "qwen3-4b" }, { id: "e5" }),
		"/api/v0/models": list(
			{ id: "qwen3-4b", type: "llm", max_context_length: 40960 },
			{ id: "e5", type: "embeddings" },
		),
	});
	const { server, models } = await only(port);
	expect(server).toMatchObject({ product: "LM Studio", dialect: "openai" });
	expect(models.map(({ id, kind, contextLength }) => [id, kind, contextLength])).toEqual([
		["qwen3-4b", "chat", 40960],
		["e5", "embedding", 4096],
	]);
});

test("the search for servers ignores servers that require a key or serve no models", async () => {
	const ports = [
		jsonServer({}),
		jsonServer({ "/v1/models": 401 }),
		jsonServer({ "/v1/models": () => new Response("<html>") }),
		jsonServer({ "/v1/models": [] }),
		jsonServer({ "/v1/models": list() }),
		jsonServer({ "/v1/models": list({ id: 7 }, "x", null) }),
		jsonServer({ "/v1/models": () => Response.redirect("http://127.0.0.1:1/") }),
		jsonServer({ "/v1/models": () => new Response("x".repeat(5 * 1024 * 1024)) }),
		1,
	];
	expect(await look(ports)).toEqual({ servers: [], models: [] });
});

test("the search for servers waits for a silent server no longer than the time limit", async () => {
	const silent = jsonServer({ "/v1/models": () => new Promise<Response>(() => {}) });
	const open = jsonServer({ "/v1/models": list({ id: "m", owned_by: "vllm" }) });
	const startedAt = performance.now();
	expect((await look([silent, open], 200)).servers.map(({ origin }) => origin)).toEqual([`http://127.0.0.1:${open}`]);
	expect(performance.now() - startedAt).toBeLessThan(10_000);
});

test("a model that two servers have is served by the first server", async () => {
	const a = jsonServer({ "/v1/models": list({ id: "m", owned_by: "vllm", max_model_len: 8192 }) });
	const b = jsonServer({ "/v1/models": list({ id: "m", max_model_len: 4096 }) });
	const { models } = await look([a, b]);
	expect(models).toMatchObject([{ contextLength: 8192, upstreams: [{ dialect: "vllm" }] }]);
});

test("a model found at a server offers only parameters that the server honours", async () => {
	const ollama = jsonServer({
		"/api/version": { version: "0.11.4" },
		"/v1/models": list({ id: "m:latest", owned_by: "library" }),
	});
	const vllm = jsonServer({ "/v1/models": list({ id: "v", owned_by: "vllm" }) });
	const { models } = await look([ollama, vllm]);
	const honoured = (dialect: string) => models.find(({ upstreams }) => upstreams[0]?.dialect === dialect)?.parameters;
	const names = ["temperature", "tools", "tool_choice", "n", "chat_template_kwargs"];
	expect(names.map((name) => honoured("ollama")?.has(name))).toEqual([true, true, false, false, false]);
	expect(names.map((name) => honoured("vllm")?.has(name))).toEqual([true, true, true, true, true]);
});
