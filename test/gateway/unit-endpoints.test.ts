/** Rerank, images and transcriptions: one shape in front of every family, each priced in its own unit. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { DialectName } from "../../src/catalog/model.ts";
import { startService, type TestService } from "../support/service.ts";
import { brokenSse, deployment, type EndpointServer, startEndpoints, wavOf } from "../support/upstream-endpoints.ts";

const FOREIGN = /upstream-|secret|srv|meta_info|local_path|seed|billed_units":\{"search_units":77/;

let service: TestService;
const servers = new Map<DialectName, EndpointServer>();
const server = (dialect: DialectName) => servers.get(dialect) as EndpointServer;

const RERANK: DialectName[] = ["openai", "vllm", "sglang", "llama.cpp", "tei"];
const AUDIO: DialectName[] = ["openai", "vllm", "llama.cpp"];

beforeAll(async () => {
	for (const dialect of [...new Set([...RERANK, ...AUDIO])]) servers.set(dialect, startEndpoints(dialect));
	const at = (dialect: DialectName) => ({ url: server(dialect).url, dialect });
	const models = RERANK.map((dialect) =>
		deployment({ id: `rerank-${dialect}`, kind: "rerank", ...at(dialect), rates: 'search: "0.002"' }),
	);
	const elsewhere = { url: server("vllm").url.replace("127.0.0.1", "localhost"), dialect: "vllm" as const };
	models.push(
		deployment({ id: "rerank-tokens", kind: "rerank", ...elsewhere, rates: 'input: "0.05"' }),
		...AUDIO.map((dialect) =>
			deployment({
				id: `audio-${dialect}`,
				kind: "transcription",
				...at(dialect),
				rates: 'audio_second: "0.0001"',
				parameters: "language, prompt, timestamp_granularities",
			}),
		),
		deployment({ id: "audio-tokens", kind: "transcription", ...elsewhere, rates: 'input: "6", output: "10"' }),
		deployment({
			id: "image",
			kind: "image",
			...at("openai"),
			rates: 'image: "0.04"',
			parameters: "n, size, response_format",
		}),
		deployment({ id: "image-tokens", kind: "image", ...elsewhere, rates: 'image: "0", input: "5", output: "40"' }),
	);
	service = await startService({ models: models.join("\n"), limits: "  breaker_failures_in_row: 100" });
});
afterAll(async () => {
	await service.stop();
	for (const one of servers.values()) await one.stop();
});

async function only(accountId: string) {
	await service.settled();
	const rows = await service.usage(accountId);
	expect(rows).toHaveLength(1);
	const row = rows[0] as Record<string, unknown>;
	return { ...row, charged: Number(row.charged_nano_usd), reserved: Number(row.reserved_nano_usd) };
}

describe("rerank", () => {
	const documents = ["short", { text: "the longest of them all" }, "a medium one"];

	test.each(RERANK)("%s: one shape, best first, priced by the search", async (dialect) => {
		const { secret, accountId } = await service.customer();
		const ask = { model: `rerank-${dialect}`, query: "q q", documents, top_n: 2, return_documents: true };
		const response = await service.post("/v1/rerank", secret, ask);
		const text = await response.text();
		expect(response.status).toBe(200);
		expect(text).not.toMatch(FOREIGN);
		// The words of the documents, and of the query once for each; where they are free nobody counts for Cohere's kind and SGLang.
		const counted = dialect !== "openai" && dialect !== "sglang";
		const tokens = counted ? 1 + 5 + 3 + 3 * 2 : 0;
		expect(JSON.parse(text)).toEqual({
			id: expect.stringMatching(/^rerank-[0-9a-f]{32}$/),
			object: "rerank",
			model: `rerank-${dialect}`,
			results: [
				{ index: 1, relevance_score: 0.023, document: { text: "the longest of them all" } },
				{ index: 2, relevance_score: 0.012, document: { text: "a medium one" } },
			],
			usage: { prompt_tokens: tokens, total_tokens: tokens, search_units: 1, cost: 0.002, basis: "exact" },
			meta: { billed_units: { search_units: 1 } },
		});
		expect(await only(accountId)).toMatchObject({ endpoint: "rerank", charged: 2_000_000, units: 1, basis: "exact" });
		const seen = server(dialect).requests.at(-1);
		const texts = ["short", "the longest of them all", "a medium one"];
		if (dialect === "tei") {
			expect(seen?.path).toBe("/rerank");
			expect(seen?.body).toEqual({ query: "q q", texts, raw_scores: false, return_text: false });
		} else {
			expect(seen?.path).toBe("/v1/rerank");
			expect(seen?.body).toEqual({ model: "served-name", query: "q q", documents: texts });
		}
	});

	test("every hundred documents begun are a search", async () => {
		const { secret, accountId } = await service.customer();
		const many = Array.from({ length: 101 }, (_, at) => `document ${at}`);
		await service.post("/v1/rerank", secret, { model: "rerank-vllm", query: "q", documents: many });
		expect(await only(accountId)).toMatchObject({ charged: 4_000_000, units: 2, reserved: 4_000_000 });
	});

	test("documents are left out unless they are asked for", async () => {
		const { secret } = await service.customer();
		const response = await service.post("/v1/rerank", secret, {
			model: "rerank-vllm",
			query: "q",
			documents: ["a", "bb"],
		});
		expect((await response.json()).results).toEqual([
			{ index: 1, relevance_score: 0.002 },
			{ index: 0, relevance_score: 0.001 },
		]);
	});

	test("a deployment with a rate for tokens is priced by them, exact to the nano-dollar", async () => {
		const { secret, accountId } = await service.customer();
		await service.post("/v1/rerank", secret, { model: "rerank-tokens", query: "a b", documents: ["c", "d e f"] });
		// 8 tokens at 50,000 pico-dollars.
		expect(await only(accountId)).toMatchObject({ charged: 400, prompt_tokens: 8, basis: "exact" });
	});

	test.each([
		["an index beyond", [{ index: 9, score: 1 }]],
		["an index twice", [0, 0].map((index) => ({ index, score: 1 }))],
		["no score", [{ index: 0 }]],
		["more results than documents", [0, 1, 0].map((index) => ({ index, score: 1 }))],
		["nothing", []],
	])("an answer with %s is a 502 that costs nothing", async (_, body) => {
		const { secret, accountId } = await service.customer();
		server("vllm").next(() => Response.json(body));
		const response = await service.post("/v1/rerank", secret, {
			model: "rerank-vllm",
			query: "q",
			documents: ["a", "b"],
		});
		expect(response.status).toBe(502);
		expect(await only(accountId)).toMatchObject({ charged: 0, ending: "upstream_failed" });
	});
});

describe("images", () => {
	test("each image has its price, by value or by a public address", async () => {
		for (const format of ["b64_json", "url"]) {
			const { secret, accountId } = await service.customer();
			const ask = { model: "image", prompt: "a cat", n: 3, size: "512x512", response_format: format, style: "vivid" };
			const response = await service.post("/v1/images/generations", secret, ask);
			const text = await response.text();
			expect(text).not.toMatch(FOREIGN);
			expect(response.headers.get("x-ignored-parameters")).toBe("style");
			const one =
				format === "url"
					? { url: "https://images.example.com/a.png" }
					: { b64_json: "aGVsbG8=", revised_prompt: "a cat" };
			expect(JSON.parse(text)).toEqual({
				created: expect.any(Number),
				data: [one, one, one],
				usage: {
					input_tokens: 5,
					output_tokens: 300,
					total_tokens: 305,
					input_tokens_details: { text_tokens: 5, image_tokens: 0 },
					images: 3,
					cost: 0.12,
					basis: "exact",
				},
			});
			expect(await only(accountId)).toMatchObject({
				endpoint: "image",
				charged: 120_000_000,
				units: 3,
				basis: "exact",
			});
		}
	});

	test("fewer images cost less, more are not handed out", async () => {
		const { secret, accountId } = await service.customer();
		server("openai").next(() => Response.json({ data: [{ b64_json: "aa==" }] }));
		await service.post("/v1/images/generations", secret, { model: "image", prompt: "x", n: 4 });
		expect(await only(accountId)).toMatchObject({ charged: 40_000_000, reserved: 160_000_000 });
		const other = await service.customer();
		server("openai").next(() => Response.json({ data: [1, 2, 3].map(() => ({ b64_json: "aa==" })) }));
		const response = await service.post("/v1/images/generations", other.secret, { model: "image", prompt: "x" });
		expect((await response.json()).data).toHaveLength(1);
		expect(await only(other.accountId)).toMatchObject({ charged: 40_000_000 });
	});

	test("a deployment with rates for tokens is priced by them", async () => {
		const { secret, accountId } = await service.customer();
		await service.post("/v1/images/generations", secret, { model: "image-tokens", prompt: "a cat" });
		expect(await only(accountId)).toMatchObject({ charged: 5 * 5_000 + 100 * 40_000, basis: "exact" });
	});

	test.each([
		["http://10.0.0.7/out.png"],
		["https://10.0.0.7/out.png"],
		["https://gpu-7/out.png"],
		["https://gpu.internal/out.png"],
		["https://[::1]/x.png"],
		["file:///srv/out.png"],
		["https://user:pass@example.com/x.png"],
	])("the address %s never leaves", async (url) => {
		const { secret, accountId } = await service.customer();
		server("openai").next(() => Response.json({ data: [{ url }] }));
		const response = await service.post("/v1/images/generations", secret, { model: "image", prompt: "x" });
		expect(response.status).toBe(502);
		expect(await response.text()).not.toContain("out.png");
		expect(await only(accountId)).toMatchObject({ charged: 0 });
	});

	test("a data URL leaves as its content", async () => {
		const { secret } = await service.customer();
		server("openai").next(() => Response.json({ data: [{ url: "data:image/png;base64,aGVsbG8=" }] }));
		const response = await service.post("/v1/images/generations", secret, { model: "image", prompt: "x" });
		expect((await response.json()).data).toEqual([{ b64_json: "aGVsbG8=" }]);
	});

	test("streaming is refused by name", async () => {
		const { secret } = await service.customer();
		const response = await service.post("/v1/images/generations", secret, {
			model: "image",
			prompt: "x",
			stream: true,
		});
		expect(response.status).toBe(400);
		expect((await response.json()).error).toMatchObject({ code: "unsupported_parameter", param: "stream" });
	});
});

describe("transcriptions", () => {
	function form(model: string, fields: Record<string, string | string[]> = {}, seconds = 9): FormData {
		const body = new FormData();
		// As the SDKs send it: the file comes before the model.
		body.append("file", new File([wavOf(seconds)], "../../talk.wav"));
		for (const [name, value] of Object.entries(fields)) for (const one of [value].flat()) body.append(name, one);
		body.append("model", model);
		return body;
	}
	const post = (secret: string, body: FormData) =>
		fetch(`${service.url}/v1/audio/transcriptions`, {
			method: "POST",
			headers: { authorization: `Bearer ${secret}` },
			body,
		});

	test.each(AUDIO)("%s: json, priced by the second of the upstream's count", async (dialect) => {
		const { secret, accountId } = await service.customer();
		const fields = {
			language: "en",
			prompt: "names",
			"timestamp_granularities[]": ["word", "segment"],
			temperature: "0.5",
		};
		const response = await post(secret, form(`audio-${dialect}`, fields));
		const text = await response.text();
		expect(response.status).toBe(200);
		expect(text).not.toMatch(FOREIGN);
		expect(response.headers.get("x-ignored-parameters")).toBe("temperature");
		expect(JSON.parse(text)).toEqual({
			text: "Hello there, big world.",
			usage: { type: "duration", seconds: 7, cost: 0.0007, basis: "exact" },
		});
		expect(await only(accountId)).toMatchObject({
			endpoint: "transcription",
			charged: 700_000,
			// Nine seconds by the file's own header.
			reserved: 900_000,
			units: 7,
			basis: "exact",
		});
		const seen = server(dialect).requests.at(-1);
		expect(seen?.body).toEqual({
			model: "served-name",
			response_format: "json",
			language: "en",
			prompt: "names",
			"timestamp_granularities[]": ["word", "segment"],
		});
		expect(seen?.file?.name).toBe("talk.wav");
		const sent = new Uint8Array((await seen?.file?.arrayBuffer()) ?? []);
		expect(Buffer.from(sent).equals(Buffer.from(wavOf(9)))).toBe(true);
	});

	test.each(AUDIO)("%s: verbose_json, text, srt and vtt", async (dialect) => {
		const { secret } = await service.customer();
		const ask = async (format: string) => {
			const response = await post(secret, form(`audio-${dialect}`, { response_format: format }));
			return { type: response.headers.get("content-type"), text: await response.text() };
		};
		const verbose = await ask("verbose_json");
		expect(verbose.text).not.toMatch(FOREIGN);
		expect(JSON.parse(verbose.text)).toMatchObject({
			task: "transcribe",
			language: "en",
			duration: 6.7,
			segments: [{ id: 0, start: 0, end: 2.5, text: " Hello there," }, { id: 1 }],
			usage: { type: "duration", seconds: 7 },
		});
		expect(await ask("text")).toEqual({ type: "text/plain; charset=utf-8", text: "Hello there, big world.\n" });
		expect((await ask("srt")).text).toBe(
			"1\n00:00:00,000 --> 00:00:02,500\nHello there,\n\n2\n00:00:02,500 --> 00:00:06,700\nbig world.\n\n",
		);
		expect((await ask("vtt")).text).toBe(
			"WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nHello there,\n\n00:00:02.500 --> 00:00:06.700\nbig world.\n\n",
		);
	});

	test.each(AUDIO)("%s: a stream has one form and one usage record", async (dialect) => {
		const { secret, accountId } = await service.customer();
		const text = await (await post(secret, form(`audio-${dialect}`, { stream: "true" }))).text();
		expect(text).not.toMatch(FOREIGN);
		// vLLM's streams count tokens, so the seconds are those of the file.
		const [seconds, basis] = dialect === "vllm" ? [9, "estimated"] : [7, "exact"];
		const events = text.split("\n\n").filter(Boolean);
		expect(events.at(-1)).toBe("data: [DONE]");
		expect(events.slice(0, -1).map((event) => JSON.parse(event.slice(6)))).toEqual([
			...["Hello", " there,", " big", " world."].map((delta) => ({ type: "transcript.text.delta", delta })),
			{
				type: "transcript.text.done",
				text: "Hello there, big world.",
				usage: { type: "duration", seconds, cost: seconds / 10_000, basis },
			},
		]);
		expect(await only(accountId)).toMatchObject({ charged: seconds * 100_000, basis, streamed: true });
	});

	test("a deployment that is priced by the token is billed by the upstream's count of them", async () => {
		const { secret, accountId } = await service.customer();
		const text = await (await post(secret, form("audio-tokens", { stream: "true" }))).text();
		const cost = 40 * 6_000 + 6 * 10_000;
		expect(text).toContain(
			`"usage":{"type":"tokens","input_tokens":40,"output_tokens":6,"total_tokens":46,"input_token_details":{"text_tokens":0,"audio_tokens":40},"cost":${cost / 1e9},"basis":"exact"}`,
		);
		expect(await only(accountId)).toMatchObject({ charged: cost, basis: "exact" });
	});

	test("a stream that dies is charged for the words that were delivered", async () => {
		const { secret, accountId } = await service.customer();
		const delta = JSON.stringify({ type: "transcript.text.delta", delta: "twelve bytes" });
		server("openai").next(() => brokenSse([delta, delta]));
		const text = await (await post(secret, form("audio-openai", { stream: "true" }, 60))).text();
		expect(text).toContain('"code":"upstream_error"');
		expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
		expect(await only(accountId)).toMatchObject({ charged: 200_000, basis: "estimated", ending: "upstream_died" });
	});

	test("usage that is missing is the length of the file, marked as estimated", async () => {
		const { secret, accountId } = await service.customer();
		server("openai").next(() => Response.json({ text: "hi" }));
		await post(secret, form("audio-openai", {}, 5));
		expect(await only(accountId)).toMatchObject({ charged: 500_000, basis: "estimated" });
	});

	test.each([
		["no file", { file: undefined, param: "file" }],
		["an empty file", { file: new File([], "a.wav"), param: "file" }],
		["a file that is text", { file: "text", param: "file" }],
		["an unknown format", { response_format: "docx", param: "response_format" }],
		["subtitles as a stream", { response_format: "srt", stream: "true", param: "response_format" }],
		["a temperature that is none", { temperature: "hot", param: "temperature" }],
	])("%s is a 400 that names its field", async (_, { param, ...fields }) => {
		const { secret } = await service.customer();
		const body = new FormData();
		body.append("model", "audio-openai");
		if (!("file" in fields)) body.append("file", new File([wavOf(1)], "a.wav"));
		for (const [name, value] of Object.entries(fields)) if (value !== undefined) body.append(name, value as string);
		const response = await post(secret, body);
		expect(response.status).toBe(400);
		expect((await response.json()).error.param).toBe(param);
	});

	test("JSON instead of a form is a 415, a broken form a 400", async () => {
		const { secret } = await service.customer();
		expect((await service.post("/v1/audio/transcriptions", secret, { model: "audio-openai" })).status).toBe(415);
		const broken = await service.post("/v1/audio/transcriptions", secret, "no form", {
			headers: { authorization: `Bearer ${secret}`, "content-type": "multipart/form-data; boundary=x" },
		});
		expect(broken.status).toBe(400);
	});

	test("a form without a length passes too", async () => {
		const { secret } = await service.customer();
		const whole = new Response(form("audio-openai"));
		const response = await fetch(`${service.url}/v1/audio/transcriptions`, {
			method: "POST",
			headers: { authorization: `Bearer ${secret}`, "content-type": whole.headers.get("content-type") as string },
			body: whole.body,
		});
		expect(response.status).toBe(200);
	});
});
