import { describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/catalog/model.ts";
import { withService } from "../../support/service.ts";
import { deployment, type EndpointServer, vectorOf, withEndpoints } from "../../support/upstream-endpoints.ts";

const DIALECTS: DialectName[] = ["openai", "vllm", "sglang", "llama.cpp", "ollama", "tei"];

const servers = new Map<DialectName, EndpointServer>();
const server = (dialect: DialectName) => servers.get(dialect) as EndpointServer;

for (const dialect of DIALECTS) servers.set(dialect, withEndpoints(dialect));
const rates = 'input: "0.013", request: "0.000002"';
const kind = "embedding";
const models = DIALECTS.map((dialect) =>
	deployment({ id: dialect, kind, url: server(dialect).url, dialect, rates, parameters: "dimensions" }),
);
const service = await withService({ models: models.join("\n"), limits: "  breaker_failures_in_row: 100" });

/** Price in nano-dollars: 13 per token and 2,000 per request. */
const price = (tokens: number) => tokens * 13 + 2_000;

async function rows(accountId: string) {
	await service.settled();
	return service.usage(accountId);
}

describe.each(DIALECTS)("embeddings endpoint with dialect %s", (dialect) => {
	test("returns vectors in the order of the inputs, at the exact price", async () => {
		const { secret, accountId } = await service.customer();
		const response = await service.post("/v1/embeddings", secret, {
			model: dialect,
			input: ["one two", "three", "four five six"],
			encoding_format: "float",
			dimensions: 3,
			user: "somebody",
		});
		expect(response.status).toBe(200);
		expect(response.headers.get("x-ignored-parameters")).toBe("user");
		expect(await response.json()).toEqual({
			object: "list",
			data: [
				{ object: "embedding", index: 0, embedding: vectorOf("one two") },
				{ object: "embedding", index: 1, embedding: vectorOf("three") },
				{ object: "embedding", index: 2, embedding: vectorOf("four five six") },
			],
			model: dialect,
			usage: { prompt_tokens: 6, total_tokens: 6, cost: price(6) / 1e9, basis: "exact" },
		});
		const { body, path } = server(dialect).requests.at(-1) as { body: object; path: string };
		expect(path).toBe("/v1/embeddings");
		const input = ["one two", "three", "four five six"];
		expect(body).toEqual({ model: "served-name", input, encoding_format: "float", dimensions: 3 });
		const [row] = await rows(accountId);
		expect(row).toMatchObject({ endpoint: "embeddings", basis: "exact", prompt_tokens: 6, completion_tokens: 0 });
		expect(Number(row?.charged_nano_usd)).toBe(price(6));
		expect(Number(row?.reserved_nano_usd)).toBeGreaterThanOrEqual(price(6));
	});

	test("encodes base64 vectors as little-endian float32", async () => {
		const { secret } = await service.customer();
		const ask = { model: dialect, input: "hello", encoding_format: "base64" };
		const bytes = Buffer.alloc(12);
		vectorOf("hello").forEach((value, at) => {
			bytes.writeFloatLE(value, at * 4);
		});
		const one = await (await service.post("/v1/embeddings", secret, ask)).json();
		expect(one.data[0].embedding).toBe(bytes.toString("base64"));
		expect(server(dialect).requests.at(-1)?.body.encoding_format).toBe("float");
		server(dialect).next(() =>
			Response.json({ data: [{ index: 0, embedding: bytes.toString("base64") }], usage: { prompt_tokens: 1 } }),
		);
		const floats = await (await service.post("/v1/embeddings", secret, { model: dialect, input: "hello" })).json();
		expect(floats.data[0].embedding).toEqual(vectorOf("hello"));
	});

	test("accepts 2,048 inputs and refuses 2,049", async () => {
		const { secret, accountId } = await service.customer();
		const before = server(dialect).requests.length;
		const input = Array.from({ length: 2048 }, (_, at) => "x".repeat(1 + (at % 7)));
		const answer = await (await service.post("/v1/embeddings", secret, { model: dialect, input })).json();
		expect(answer.data.map((item: { embedding: number[] }) => item.embedding[0])).toEqual(
			input.map((one) => one.length),
		);
		expect(answer.usage.prompt_tokens).toBe(2048);
		expect(server(dialect).requests.length - before).toBe(dialect === "tei" ? 64 : 1);
		const [row] = await rows(accountId);
		expect(Number(row?.charged_nano_usd)).toBe(price(2048));
		const many = await service.post("/v1/embeddings", secret, { model: dialect, input: [...input, "one more"] });
		expect(many.status).toBe(400);
		expect((await many.json()).error.param).toBe("input");
	});

	test("accepts tokens as input if the dialect does", async () => {
		const { secret } = await service.customer();
		const response = await service.post("/v1/embeddings", secret, { model: dialect, input: [[1, 2], [3]] });
		expect(response.status).toBe(dialect === "ollama" ? 400 : 200);
		if (dialect !== "ollama") expect((await response.json()).usage.prompt_tokens).toBe(3);
	});
});

test.each([
	["too few vectors", { data: [] }],
	["a repeated index", { data: [0, 0].map((index) => ({ index, embedding: [1] })) }],
	["an index out of range", { data: [0, 2].map((index) => ({ index, embedding: [1] })) }],
	["holes in a vector", { data: [0, 1].map((index) => ({ index, embedding: [1, null] })) }],
	...["1e999", "NaN", "-Infinity", '"1"'].map((number): [string, string] => [
		`the number ${number}`,
		`{"data": [{"index": 0, "embedding": [1, ${number}]}, {"index": 1, "embedding": [1, 2]}]}`,
	]),
	["NaN in base64", '{"data": [{"index": 0, "embedding": "AADAfw=="}, {"index": 1, "embedding": "AACAPw=="}]}'],
	["invalid base64", { data: [0, 1].map((index) => ({ index, embedding: "ab" })) }],
	["JSON that is no object", "[1, 2]"],
	["an answer that is no JSON", "<html>secret</html>"],
])("the gateway converts an embedding with %s to a 502 without a charge", async (_, body) => {
	const { secret, accountId } = await service.customer();
	server("openai").next(() => new Response(typeof body === "string" ? body : JSON.stringify(body)));
	const response = await service.post("/v1/embeddings", secret, { model: "openai", input: ["a", "b"] });
	expect(response.status).toBe(502);
	expect(await response.text()).not.toContain("secret");
	expect(await rows(accountId)).toMatchObject([{ charged_nano_usd: "0", status: 502 }]);
});

test("the gateway reads the plain list of embeddings of older llama.cpp", async () => {
	const { secret, accountId } = await service.customer();
	server("llama.cpp").next(() => Response.json([{ index: 0, embedding: [[0.5, 0.25]] }]));
	const answer = await (
		await service.post("/v1/embeddings", secret, { model: "llama.cpp", input: "abcdefgh", encoding_format: "float" })
	).json();
	expect(answer.data[0].embedding).toEqual([0.5, 0.25]);
	expect(await rows(accountId)).toMatchObject([{ basis: "estimated" }]);
});

test("the gateway reads TEI's count of embedding tokens from a response header", async () => {
	const { secret } = await service.customer();
	server("tei").next(() =>
		Response.json({ data: [{ index: 0, embedding: [1] }] }, { headers: { "x-compute-tokens": "17" } }),
	);
	const answer = await (await service.post("/v1/embeddings", secret, { model: "tei", input: "x" })).json();
	expect(answer.usage.prompt_tokens).toBe(17);
});
