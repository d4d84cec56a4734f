import { describe, expect, spyOn, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DialectName } from "../../../src/catalog/model.ts";
import { jsonEvents } from "../../support/raw-answer.ts";
import { withService } from "../../support/service.ts";
import { brokenSse, deployment, type EndpointServer, withEndpoints } from "../../support/upstream-endpoints.ts";
import { CHAT_DIALECTS, SINGLE_CHOICE } from "../../support/upstream-wire.ts";

const FOREIGN = /cmpl-upstream|secret|10\.0\.0\.1|token_ids|stop_reason|gguf/;
const PARAMETERS = "temperature, max_tokens, echo, suffix, logprobs, stop, seed";
const parametersOf = (dialect: DialectName) => (SINGLE_CHOICE.has(dialect) ? PARAMETERS : `${PARAMETERS}, n`);

const servers = new Map<DialectName, EndpointServer>();
const server = (dialect: DialectName) => servers.get(dialect) as EndpointServer;

for (const dialect of CHAT_DIALECTS) servers.set(dialect, withEndpoints(dialect));
const rates = 'input: "1", cached_input: "0.5", output: "2", request: "0.001"';
const models = CHAT_DIALECTS.map((dialect) =>
	deployment({ id: dialect, url: server(dialect).url, dialect, rates, parameters: parametersOf(dialect) }),
);
models.push(deployment({ id: "plain", url: server("openai").url.replace("/v1", "/v1/"), dialect: "openai", rates }));
const service = await withService({ models: models.join("\n"), limits: "  breaker_failures_in_row: 100" });

/** Price in nano-dollars: 1,000 per prompt token, 2,000 per output token, 1,000,000 per request. */
const price = (prompt: number, completion: number) => prompt * 1_000 + completion * 2_000 + 1_000_000;

async function charged(accountId: string) {
	await service.settled();
	return (await service.usage(accountId)).map((row) => ({
		charged: Number(row.charged_nano_usd),
		reserved: Number(row.reserved_nano_usd),
		basis: row.basis,
		ending: row.ending,
		status: row.status,
		prompt: row.prompt_tokens,
		completion: row.completion_tokens,
		streamed: row.streamed,
		endpoint: row.endpoint,
	}));
}

// biome-ignore lint/suspicious/noExplicitAny: events are read by hand.
const eventsOf = (text: string): any[] => jsonEvents(text);

describe.each(CHAT_DIALECTS)("with dialect %s", (dialect) => {
	test("a completion that is not streamed has OpenAI's fields and the exact price", async () => {
		const { secret, accountId } = await service.customer();
		const ask = { model: dialect, prompt: "a b c d", max_tokens: 9 };
		const response = await service.post("/v1/completions", secret, ask);
		const text = await response.text();
		expect(response.status).toBe(200);
		expect(text).not.toMatch(FOREIGN);
		const body = JSON.parse(text);
		expect(body).toEqual({
			id: expect.stringMatching(/^cmpl-[0-9a-f]{32}$/),
			object: "text_completion",
			created: expect.any(Number),
			model: dialect,
			choices: [{ text: " one two three", index: 0, logprobs: null, finish_reason: "stop" }],
			usage: {
				prompt_tokens: 4,
				completion_tokens: 3,
				total_tokens: 7,
				prompt_tokens_details: { cached_tokens: 0 },
				completion_tokens_details: { reasoning_tokens: 0 },
				cost: price(4, 3) / 1e9,
				basis: "exact",
			},
			system_fingerprint: null,
		});
		expect(await charged(accountId)).toMatchObject([
			{ charged: price(4, 3), basis: "exact", ending: "finished", endpoint: "completions", prompt: 4, completion: 3 },
		]);
	});

	test("a streamed completion ends with one usage record", async () => {
		const { secret, accountId } = await service.customer();
		for (const includeUsage of [true, false]) {
			const response = await service.post("/v1/completions", secret, {
				model: dialect,
				prompt: "a b c d",
				max_tokens: 9,
				stream: true,
				...(includeUsage ? { stream_options: { include_usage: true } } : {}),
			});
			const text = await response.text();
			expect(text).not.toMatch(FOREIGN);
			expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
			const events = eventsOf(text);
			expect(events.map((event) => event.choices[0]?.text ?? "").join("")).toBe(" one two three");
			expect(new Set(events.map((event) => `${event.id} ${event.object} ${event.created}`)).size).toBe(1);
			expect(events[0].object).toBe("text_completion");
			const last = events.at(-1);
			expect(last.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 3, cost: price(4, 3) / 1e9 });
			expect(last.choices).toHaveLength(includeUsage ? 0 : 1);
			expect(events.slice(0, -1).every((event) => (includeUsage ? event.usage === null : !("usage" in event)))).toBe(
				true,
			);
		}
		expect(await charged(accountId)).toMatchObject([
			{ charged: price(4, 3), streamed: true },
			{ charged: price(4, 3), streamed: true },
		]);
	});

	test("max_tokens of a completion defaults to 16 and is sent under one name", async () => {
		const { secret } = await service.customer();
		const before = server(dialect).requests.length;
		await service.post("/v1/completions", secret, { model: dialect, prompt: "x", stop: "END", user: "u" });
		const { body, path } = (await server(dialect).waitForRequest(before + 1)) as { body: object; path: string };
		expect(path).toBe("/v1/completions");
		expect(body).toEqual({
			model: "served-name",
			prompt: "x",
			stop: dialect === "tgi" ? ["END"] : "END",
			max_tokens: 16,
			stream: false,
		});
	});

	test.each([false, true])(
		"a completion of several prompts and choices is charged in full (stream %p)",
		async (stream) => {
			const { secret, accountId } = await service.customer();
			const response = await service.post("/v1/completions", secret, {
				model: dialect,
				prompt: ["a b", "c d e"],
				n: 2,
				max_tokens: 5,
				stream,
			});
			if (dialect === "ollama") {
				expect(response.status).toBe(400);
				expect((await response.json()).error.param).toBe("prompt");
				expect(await charged(accountId)).toEqual([]);
				return;
			}
			const single = dialect === "tgi";
			const count = single ? 2 : 4;
			const answer = stream ? eventsOf(await response.text()) : [await response.json()];
			const choices = answer.flatMap((event) => event.choices);
			expect([...new Set(choices.map((choice) => choice.index))].sort()).toEqual([...Array(count).keys()]);
			expect(choices.reduce((sum, choice) => sum + choice.text.length, 0)).toBe(" one two three".length * count);
			expect(answer.at(-1).usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 3 * count });
			const [row] = await charged(accountId);
			expect(row).toMatchObject({ charged: price(5, 3 * count), basis: "exact" });
			// The reservation covers every choice of each prompt at the full output limit.
			expect(row?.reserved).toBeGreaterThanOrEqual(price(5, 5 * count));
		},
	);

	test("token prompts of a completion are sent if the dialect accepts them", async () => {
		const { secret } = await service.customer();
		const ask = { model: dialect, prompt: [[5, 6, 7], [8]], max_tokens: 2 };
		const response = await service.post("/v1/completions", secret, ask);
		if (dialect === "ollama" || dialect === "tgi") {
			expect(response.status).toBe(400);
			return;
		}
		const body = await response.json();
		expect(body.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 4 });
		expect(body.choices.map((choice: { finish_reason: string }) => choice.finish_reason)).toEqual(["length", "length"]);
	});

	test("a streamed completion whose server dies is charged for the delivered output", async () => {
		const { secret, accountId } = await service.customer();
		const piece = (text: string, completion: number) =>
			JSON.stringify({
				id: "u",
				choices: [{ index: 0, text, finish_reason: null }],
				...(dialect === "vllm" || dialect === "sglang"
					? { usage: { prompt_tokens: 3, completion_tokens: completion, total_tokens: 3 + completion } }
					: {}),
			});
		server(dialect).next(() => brokenSse([piece("acknowledgement", 1), piece(" responsibilities", 2)]));
		const response = await service.post("/v1/completions", secret, {
			model: dialect,
			prompt: "aaaa bbbb cccc",
			max_tokens: 50,
			stream: true,
		});
		const text = await response.text();
		const events = eventsOf(text);
		const exact = dialect === "vllm" || dialect === "sglang";
		const [row] = await charged(accountId);
		expect(row).toMatchObject({ ending: "upstream_died", basis: exact ? "exact" : "estimated", completion: 2 });
		if (exact) expect(row?.charged).toBe(price(3, 2));
		expect(events.at(-2).error).toEqual({
			message: expect.any(String),
			type: "server_error",
			param: null,
			code: "upstream_error",
		});
		expect(events.at(-1).usage.cost).toBe((row?.charged as number) / 1e9);
		expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
	});
});

test("`echo` and `logprobs` of a completion are sent if the model lists them", async () => {
	const { secret } = await service.customer();
	const body = { prompt: "a b", echo: true, logprobs: 2, best_of: 2, n: 2, mystery: 1, max_tokens: 5 };
	const listed = await service.post("/v1/completions", secret, { model: "openai", ...body });
	expect(listed.headers.get("x-ignored-parameters")).toBe("mystery");
	const answer = await listed.json();
	expect(answer.choices).toHaveLength(2);
	expect(answer.choices[0].text).toBe("a b one two three");
	expect(answer.choices[0].logprobs).toEqual({
		tokens: [" one", " two", " three"],
		token_logprobs: [-0.5, -0.5, -0.5],
		top_logprobs: null,
		text_offset: [0, 1, 2],
	});
});

test("a field that would change the completion is refused if the server ignores it", async () => {
	const { secret } = await service.customer();
	const post = (model: string, more: object) =>
		service.post("/v1/completions", secret, { model, prompt: "a b", ...more });
	const missing = [{ echo: true }, { suffix: "x" }, { best_of: 2 }, { min_tokens: 1 }];
	for (const [model, more] of [
		...missing.map((more) => ["plain", more] as const),
		...["llama.cpp", "ollama", "tgi"].map((dialect) => [dialect, { echo: true, logprobs: 1 }] as const),
	]) {
		const response = await post(model, more);
		const { error } = (await response.json()) as { error: Record<string, unknown> };
		expect([model, more, response.status, error.code, error.param]).toEqual([
			model,
			more,
			400,
			"unsupported_parameter",
			Object.keys(more)[0],
		]);
	}
	const harmless = { echo: false, suffix: "", best_of: 1, stop: [], logit_bias: {}, n: 2, mystery: 1, max_tokens: 5 };
	const plain = await post("plain", harmless);
	expect([plain.status, plain.headers.get("x-ignored-parameters")]).toEqual([
		200,
		"echo, suffix, n, mystery, max_tokens",
	]);
});

test("a completion that fails by a bug after its settlement is still charged", async () => {
	const { secret, accountId } = await service.customer();
	const { stringify } = JSON;
	const bug = spyOn(JSON, "stringify").mockImplementation(((value: unknown, ...more: []) => {
		if ((value as { object?: string } | null)?.object === "text_completion") throw new TypeError("a bug");
		return stringify(value, ...more);
	}) as typeof JSON.stringify);
	const response = await service.post("/v1/completions", secret, { model: "vllm", prompt: "a b c" });
	bug.mockRestore();
	expect([response.status, (await response.json()).error.code]).toEqual([500, "internal_error"]);
	expect(await charged(accountId)).toMatchObject([{ charged: price(3, 3) }]);
	const runbook = readFileSync(join(import.meta.dir, "../../../src/ops/runbook.md"), "utf8");
	const [, page = ""] = /### TollgateInternalErrors\n\n(.*?)\n\n/s.exec(runbook) ?? [];
	expect(page).toContain("Its usage record, by that id, says what was charged");
});
