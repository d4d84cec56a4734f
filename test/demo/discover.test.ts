import { afterEach, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { discover } from "../../src/demo/discover.ts";

type Answer = unknown | (() => Response | Promise<Response>);

const servers: { stop(force: boolean): Promise<void> }[] = [];
afterEach(async () => {
	await Promise.all(servers.splice(0).map((server) => server.stop(true)));
});

/** Starts a server that answers the given calls, such as `GET /v1/models`, with JSON, and all others with 404. */
function serve(answers: Readonly<Record<string, Answer>>, headers: Record<string, string> = {}): number {
	const server = Bun.serve({
		hostname: "127.0.0.1",
		port: 0,
		development: false,
		async fetch(request) {
			const answer = answers[`${request.method} ${new URL(request.url).pathname}`];
			if (answer === undefined) return new Response("no", { status: 404 });
			return typeof answer === "function" ? answer() : Response.json(answer, { headers });
		},
	});
	servers.push(server);
	return server.port as number;
}

const list = (...data: unknown[]) => ({ object: "list", data });
const look = (ports: number[], timeoutMs = 2000) =>
	discover({ clock: systemClock, log: silentLog }, { ports, timeoutMs });

async function only(port: number) {
	const { servers, models } = await look([port]);
	expect(servers).toHaveLength(1);
	return { server: servers[0], model: models[0], upstream: models[0]?.upstreams[0], models };
}

test("vLLM is recognised by its list of models, with its context length", async () => {
	const port = serve({ "GET /v1/models": list({ id: "Qwen/Qwen3-8B", owned_by: "vllm", max_model_len: 32768 }) });
	const { server, model, upstream } = await only(port);
	expect(server?.product).toBe("vLLM");
	expect(model).toMatchObject({ id: "Qwen/Qwen3-8B", kind: "chat", contextLength: 32768, maxOutputTokens: 8192 });
	expect(model?.modes).toEqual(new Set(["chat", "completions"]));
	expect(upstream).toMatchObject({ url: `http://127.0.0.1:${port}/v1`, model: "Qwen/Qwen3-8B", dialect: "vllm" });
});

test("SGLang is recognised by its list of models", async () => {
	const port = serve({ "GET /v1/models": list({ id: "m", owned_by: "sglang", max_model_len: 2048 }) });
	const { model, upstream } = await only(port);
	expect(upstream?.dialect).toBe("sglang");
	expect(model).toMatchObject({ contextLength: 2048, maxOutputTokens: 2048 });
});

test("llama.cpp is recognised by its Server header; the file's name is the model", async () => {
	const port = serve(
		{
			"GET /v1/models": list({ id: "/srv/models/tiny.Q4_K_M.gguf", meta: { n_ctx_train: 131072 } }),
			"GET /props": { default_generation_settings: { n_ctx: 4096 }, modalities: { vision: true } },
		},
		{ server: "llama.cpp" },
	);
	const { model, upstream } = await only(port);
	expect(upstream).toMatchObject({ dialect: "llama.cpp", model: "/srv/models/tiny.Q4_K_M.gguf" });
	expect(model).toMatchObject({ id: "tiny.Q4_K_M", contextLength: 4096 });
	expect(model?.inputModalities).toEqual(new Set(["text", "image"]));
});

test("Ollama is recognised by its version; embedding models become embeddings", async () => {
	let asked = 0;
	const port = serve({
		"GET /v1/models": list({ id: "llama3.2:3b", owned_by: "library" }, { id: "nomic-embed-text:latest" }),
		"GET /api/version": { version: "0.12.0" },
		"POST /api/show": () =>
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

test("LM Studio has the OpenAI format, marks its embedding models", async () => {
	const port = serve({
		"GET /v1/models": list({ id: "qwen3-4b" }, { id: "e5" }),
		"GET /api/v0/models": list(
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

test("an unknown server gets the OpenAI format with a small context", async () => {
	const { model, upstream } = await only(serve({ "GET /v1/models": list({ id: "some model!", owned_by: "me" }) }));
	expect(upstream).toMatchObject({ dialect: "openai", model: "some model!" });
	expect(model).toMatchObject({ id: "some-model-", contextLength: 4096 });
});

test("a server that is no model server, or requires a key, is ignored", async () => {
	const ports = [
		serve({}),
		serve({ "GET /v1/models": () => new Response("unauthorized", { status: 401 }) }),
		serve({ "GET /v1/models": () => new Response("<html>") }),
		serve({ "GET /v1/models": [] }),
		serve({ "GET /v1/models": list() }),
		serve({ "GET /v1/models": list({ id: 7 }, "x", null) }),
		serve({ "GET /v1/models": () => Response.redirect("http://127.0.0.1:1/") }),
		serve({ "GET /v1/models": () => new Response("x".repeat(5 * 1024 * 1024)) }),
		1,
	];
	expect(await look(ports)).toEqual({ servers: [], models: [] });
});

test("a silent server delays the others by the time limit at most", async () => {
	const silent = serve({ "GET /v1/models": () => new Promise<Response>(() => {}) });
	const open = serve({ "GET /v1/models": list({ id: "m", owned_by: "vllm" }) });
	const startedAt = performance.now();
	const { servers } = await look([silent, open], 200);
	expect(servers.map(({ origin }) => origin)).toEqual([`http://127.0.0.1:${open}`]);
	expect(performance.now() - startedAt).toBeLessThan(10_000);
});

test("of two servers with one model the first serves the model", async () => {
	const a = serve({ "GET /v1/models": list({ id: "m", owned_by: "vllm", max_model_len: 8192 }) });
	const b = serve({ "GET /v1/models": list({ id: "m", max_model_len: 4096 }) });
	const { models } = await look([a, b]);
	expect(models).toMatchObject([{ contextLength: 8192, upstreams: [{ dialect: "vllm" }] }]);
});

test("a found model offers only parameters that its server honours", async () => {
	const ollama = serve({
		"GET /api/version": () => Response.json({ version: "0.11.4" }),
		"GET /v1/models": list({ id: "m:latest", owned_by: "library" }),
	});
	const vllm = serve({ "GET /v1/models": list({ id: "v", owned_by: "vllm" }) });
	const { models } = await look([ollama, vllm]);
	const honoured = (dialect: string) => models.find(({ upstreams }) => upstreams[0]?.dialect === dialect)?.parameters;
	const names = ["temperature", "tools", "tool_choice", "n", "chat_template_kwargs"];
	expect(names.map((name) => honoured("ollama")?.has(name))).toEqual([true, true, false, false, false]);
	expect(names.map((name) => honoured("vllm")?.has(name))).toEqual([true, true, true, true, true]);
});
