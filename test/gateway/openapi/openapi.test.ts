import { describe, expect, test } from "bun:test";
import { findViolation, resolveRef } from "../../support/json-schema.ts";
import { withService } from "../../support/service.ts";
import { brokenSse, deployment, wavOf, withEndpoints } from "../../support/upstream-endpoints.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";

// biome-ignore lint/suspicious/noExplicitAny: the document is walked by hand.
type Any = any;

const upstream = withEndpoints("vllm");
const chats = withUpstream("vllm");
const at = { url: upstream.url, dialect: "vllm" as const };
const tokens = 'input: "1", output: "2"';
const parameters = "max_tokens, n, echo, logprobs, tools, timestamp_granularities";
const service = await withService({
	models: [
		deployment({ id: "text", ...at, rates: tokens, parameters }),
		deployment({ id: "chat", url: chats.url, rates: tokens, parameters }),
		deployment({ id: "embedding", kind: "embedding", ...at, rates: 'input: "1"', extra: "    modes: [batch]" }),
		deployment({ id: "rerank", kind: "rerank", ...at, rates: 'search: "0.001"' }),
		deployment({ id: "image", kind: "image", ...at, rates: 'image: "0.01"', parameters }),
		deployment({ id: "audio", kind: "transcription", ...at, rates: 'audio_second: "0.001"', parameters }),
	].join("\n"),
	limits: "  breaker_failures_in_row: 100",
});
const secret = (await service.customer()).secret;
const document = await (await fetch(`${service.url}/openapi.json`)).json();

/** Checks an answer against the document's schema for its path, method, status and content type. */
async function assertDescribed(path: string, method: "get" | "post" | "delete", response: Response): Promise<string> {
	const described = document.paths[path][method].responses[String(response.status)];
	if (described === undefined) throw new Error(`${method} ${path}: the status ${response.status} is not described`);
	const type = (response.headers.get("content-type") ?? "").split(";")[0] as string;
	const content = described.content[type];
	if (content === undefined) throw new Error(`${method} ${path} ${response.status}: ${type} is not described`);
	const text = await response.text();
	if (type === "application/json") assertValid(content.schema, JSON.parse(text));
	for (const event of type === "text/event-stream" ? text.split("\n\n") : []) {
		if (event.startsWith("data: {")) assertValid(content["x-event-schema"], JSON.parse(event.slice(6)));
		else expect(["", ": ", "data: [DONE]"]).toContain(event);
	}
	return text;
}

function assertValid(schema: Any, value: unknown): void {
	const violation = findViolation(document, schema, value);
	if (violation !== undefined) throw new Error(`${violation}\nin ${JSON.stringify(value).slice(0, 500)}`);
}

test("the OpenAPI document is version 3.1 with valid references", () => {
	expect(document.openapi).toBe("3.1.0");
	expect(JSON.stringify(document)).not.toContain('"nullable"');
	const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] as string);
	expect(refs.length).toBeGreaterThan(20);
	for (const ref of refs) resolveRef(document, ref);
});

test("every path and method in the OpenAPI document is served; others return 405", async () => {
	for (const [path, methods] of Object.entries<Any>(document.paths)) {
		for (const method of Object.keys(methods)) {
			const url = `${service.url}${path.replace("{id}", "text")}`;
			const response = await fetch(url, {
				method: method.toUpperCase(),
				headers: { authorization: `Bearer ${secret}` },
			});
			expect([path, method, response.status === 405]).toEqual([path, method, false]);
			if (response.status === 404) expect((await response.json()).error.message).not.toContain("Unknown endpoint");
		}
		const other = methods.get === undefined ? "GET" : "PUT";
		if (!path.startsWith("/v1/") || /files|batches/.test(path)) continue;
		expect((await fetch(`${service.url}${path.replace("{id}", "text")}`, { method: other })).status).toBe(405);
	}
});

const form = (fields: Record<string, string>) => {
	const body = new FormData();
	body.append("file", new File([wavOf(2)], "a.wav"));
	for (const [name, value] of Object.entries(fields)) body.append(name, value);
	return body;
};
const messages = [{ role: "user", content: "hello there" }];

describe("the OpenAPI document describes real answers", () => {
	test.each<[string, object]>([
		["/v1/chat/completions", { model: "chat", messages }],
		["/v1/chat/completions", { model: "chat", messages, stream: true }],
		["/v1/chat/completions", { model: "chat", messages, stream: true, stream_options: { include_usage: true } }],
		["/v1/completions", { model: "text", prompt: "a b", logprobs: 1, n: 2 }],
		["/v1/completions", { model: "text", prompt: ["a b", "c"], stream: true }],
		["/v1/completions", { model: "text", prompt: [1, 2], stream: true, stream_options: { include_usage: true } }],
		["/v1/embeddings", { model: "embedding", input: ["a", "b"] }],
		["/v1/embeddings", { model: "embedding", input: "a", encoding_format: "base64" }],
		["/v1/rerank", { model: "rerank", query: "q", documents: ["a", "b"], return_documents: true }],
		["/v1/images/generations", { model: "image", prompt: "a cat", n: 2 }],
	])("to POST %s %o", async (path, body) => {
		const request = document.paths[path].post.requestBody.content["application/json"].schema;
		assertValid(request, body);
		const response = await service.post(path, secret, body);
		expect(response.status).toBe(200);
		await assertDescribed(path, "post", response);
	});

	test.each([{}, { response_format: "verbose_json" }, { response_format: "srt" }, { stream: "true" }])(
		"to POST /v1/audio/transcriptions %o",
		async (fields) => {
			const path = "/v1/audio/transcriptions";
			const response = await service.post(path, secret, form({ model: "audio", ...fields }));
			expect(response.status).toBe(200);
			await assertDescribed(path, "post", response);
		},
	);

	test("with tool calls and reasoning", async () => {
		for (const stream of [false, true]) {
			chats.next(reply().reasoning("hm").text("Looking.").toolCall("find", { q: 1 }));
			const tools = [{ type: "function", function: { name: "find", parameters: {} } }];
			const response = await service.chat(secret, { model: "chat", messages, tools, stream });
			expect(await assertDescribed("/v1/chat/completions", "post", response)).toContain("find");
		}
	});

	test("with a stream that fails", async () => {
		const event = JSON.stringify({ choices: [{ index: 0, text: "x", finish_reason: null }] });
		upstream.next(() => brokenSse([event]));
		const response = await service.post("/v1/completions", secret, { model: "text", prompt: "x", stream: true });
		expect(await assertDescribed("/v1/completions", "post", response)).toContain('"error"');
	});

	test.each(["/v1/models", "/v1/key", "/v1/credits", "/status", "/openapi.json"])("to GET %s", async (path) => {
		await assertDescribed(path, "get", await service.get(path, secret));
	});

	test("to requests for models and for a request's usage", async () => {
		await assertDescribed("/v1/models/{id}", "get", await service.get("/v1/models/text", secret));
		await assertDescribed("/v1/models/{id}", "get", await service.get("/v1/models/none", secret));
		const response = await service.post("/v1/rerank", secret, { model: "rerank", query: "q", documents: ["a"] });
		const id = response.headers.get("x-request-id");
		await assertDescribed("/v1/usage/{id}", "get", await service.get(`/v1/usage/${id}`, secret));
		await assertDescribed("/v1/usage/{id}", "get", await service.get("/v1/usage/none", secret));
		const page = await fetch(`${service.url}/status`, { headers: { accept: "text/html" } });
		await assertDescribed("/status", "get", page);
	});

	test("to all requests for files, from upload to deletion", async () => {
		const form = new FormData();
		form.append("file", new File(["{}"], "in.jsonl"));
		form.append("purpose", "batch");
		const ask = (path: string, init: RequestInit = {}) =>
			fetch(`${service.url}${path}`, { ...init, headers: { ...init.headers, authorization: `Bearer ${secret}` } });
		const made = JSON.parse(
			await assertDescribed("/v1/files", "post", await ask("/v1/files", { method: "POST", body: form })),
		);
		await assertDescribed("/v1/files", "get", await ask("/v1/files"));
		const [one, content] = ["/v1/files/{id}", "/v1/files/{id}/content"];
		await assertDescribed(one, "get", await ask(`/v1/files/${made.id}`));
		for (const headers of [{}, { range: "bytes=1-" }, { range: "bytes=2-" }])
			await assertDescribed(content, "get", await ask(`/v1/files/${made.id}/content`, { headers }));
		for (let time = 0; time < 2; time += 1)
			await assertDescribed(one, "delete", await ask(`/v1/files/${made.id}`, { method: "DELETE" }));
	});

	test("with errors of every kind", async () => {
		const poor = await service.customer({ exactCredit: 1 });
		const cases: [string, Response][] = [
			["/v1/embeddings", await service.post("/v1/embeddings", secret, { model: "embedding" })],
			["/v1/embeddings", await service.post("/v1/embeddings", undefined, {})],
			["/v1/embeddings", await service.post("/v1/embeddings", poor.secret, { model: "embedding", input: "x" })],
			["/v1/embeddings", await service.post("/v1/embeddings", secret, { model: "none", input: "x" })],
			["/v1/embeddings", await service.post("/v1/embeddings", secret, { model: "text", input: "x" })],
			[
				"/v1/embeddings",
				await service.post("/v1/embeddings", secret, "x", { headers: { "content-type": "text/plain" } }),
			],
			["/v1/batches", await service.post("/v1/batches", secret, {})],
			["/v1/files", await service.post("/v1/files", secret, {})],
			["/v1/completions", await service.post("/v1/completions", poor.secret, { model: "text", prompt: "x" })],
		];
		upstream.next(() => Response.json({ error: { message: "x" } }, { status: 500 }));
		cases.push([
			"/v1/rerank",
			await service.post("/v1/rerank", secret, { model: "rerank", query: "q", documents: ["a"] }),
		]);
		expect(cases.map(([, response]) => response.status)).toEqual([400, 401, 402, 404, 404, 415, 400, 415, 402, 502]);
		for (const [path, response] of cases) await assertDescribed(path, "post", response);
	});
});

test("the service refuses exactly the requests that the OpenAPI document calls invalid", async () => {
	const cases: [string, object, boolean][] = [
		["/v1/completions", { model: "text", prompt: [] }, false],
		["/v1/completions", { model: "text", prompt: "x", n: 0 }, false],
		["/v1/completions", { model: "text", prompt: "x", temperature: null }, true],
		["/v1/embeddings", { model: "embedding", input: [""] }, false],
		["/v1/embeddings", { model: "embedding", input: [[1], [2]] }, true],
		["/v1/rerank", { model: "rerank", query: "q", documents: [{ txt: "x" }] }, false],
		["/v1/images/generations", { model: "image", prompt: "x", n: 11 }, false],
	];
	for (const [path, body, valid] of cases) {
		const schema = document.paths[path].post.requestBody.content["application/json"].schema;
		expect([path, findViolation(document, schema, body) === undefined]).toEqual([path, valid]);
		expect([path, (await service.post(path, secret, body)).status]).toEqual([path, valid ? 200 : 400]);
	}
});
