import { expect, test } from "bun:test";
import type { DialectName } from "../../../src/catalog/model.ts";
import { onlyUsage } from "../../support/chat.ts";
import { withService } from "../../support/service.ts";
import { deployment, type EndpointServer, SECRET_WORDS, withEndpoints } from "../../support/upstream-endpoints.ts";

const DIALECTS: DialectName[] = ["openai", "vllm", "sglang", "llama.cpp", "tei"];
const servers = new Map(DIALECTS.map((dialect) => [dialect, withEndpoints(dialect)]));
const server = (dialect: DialectName) => servers.get(dialect) as EndpointServer;
const service = await withService({
	models: [
		...DIALECTS.map((dialect) =>
			deployment({
				id: `rerank-${dialect}`,
				kind: "rerank",
				url: server(dialect).url,
				dialect,
				rates: 'search: "0.002"',
			}),
		),
		deployment({
			id: "rerank-tokens",
			kind: "rerank",
			url: server("vllm").url.replace("127.0.0.1", "localhost"),
			rates: 'input: "0.05"',
		}),
	].join("\n"),
	limits: "  breaker_failures_in_row: 100",
});

const only = (accountId: string) => onlyUsage(service, accountId);

const documents = ["short", { text: "the longest of them all" }, "a medium one"];

test.each(DIALECTS)("dialect %s ranks documents in one format, priced per search", async (dialect) => {
	const { secret, accountId } = await service.customer();
	const ask = { model: `rerank-${dialect}`, query: "q q", documents, top_n: 2, return_documents: true };
	const response = await service.post("/v1/rerank", secret, ask);
	const text = await response.text();
	expect(response.status).toBe(200);
	expect(text).not.toMatch(SECRET_WORDS);
	// One token per word of the documents and, for each document, of the query. Servers of these two dialects report no
	// tokens.
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

test("a rerank costs one search for each hundred documents", async () => {
	const { secret, accountId } = await service.customer();
	const many = Array.from({ length: 101 }, (_, at) => `document ${at}`);
	await service.post("/v1/rerank", secret, { model: "rerank-vllm", query: "q", documents: many });
	expect(await only(accountId)).toMatchObject({ charged: 4_000_000, units: 2, reserved: 4_000_000 });
});

test("a rerank returns no document texts unless requested, and charges priced tokens", async () => {
	const { secret, accountId } = await service.customer();
	const ask = { model: "rerank-tokens", query: "a b", documents: ["c", "d e f"] };
	expect((await (await service.post("/v1/rerank", secret, ask)).json()).results).toEqual([
		{ index: 1, relevance_score: 0.005 },
		{ index: 0, relevance_score: 0.001 },
	]);
	expect(await only(accountId)).toMatchObject({ charged: 400, prompt_tokens: 8, basis: "exact" });
});

test.each([
	["an index out of range", [{ index: 9, score: 1 }]],
	["a repeated index", [0, 0].map((index) => ({ index, score: 1 }))],
	["no score", [{ index: 0 }]],
	["more results than documents", [0, 1, 0].map((index) => ({ index, score: 1 }))],
	["no results", []],
	["a score beyond all numbers", '[{"index": 0, "score": 1e999}, {"index": 1, "score": 1}]'],
])("the gateway converts a rerank with %s to a 502 without a charge", async (_, body) => {
	const { secret, accountId } = await service.customer();
	server("vllm").next(() => new Response(typeof body === "string" ? body : JSON.stringify(body)));
	const ask = { model: "rerank-vllm", query: "q", documents: ["a", "b"] };
	expect((await service.post("/v1/rerank", secret, ask)).status).toBe(502);
	expect(await only(accountId)).toMatchObject({ charged: 0, ending: "upstream_failed" });
});
