import { afterEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { Fault, type FaultCode } from "../../../src/base/fault.ts";
import type { Model, Route } from "../../../src/catalog/model.ts";
import { chat } from "../../../src/gateway/chat/chat-request.ts";
import { createContext } from "../../../src/gateway/serve/context.ts";
import { serveRoute } from "../../../src/gateway/serve/serve-route.ts";
import { createProject } from "../../../src/keys/project-admin.ts";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { createRoad, fakeRequest } from "../../support/road.ts";
import { withService } from "../../support/service.ts";
import { modelOver } from "../../support/upstream-catalog.ts";
import { withEndpoints } from "../../support/upstream-endpoints.ts";
import { reply, type UpstreamServer, withUpstream } from "../../support/upstream-server.ts";

const small = withUpstream();
const large = withUpstream();
const cheap = withUpstream();
const gone = withUpstream();
const vectors = withEndpoints("openai");
const all: readonly [string, UpstreamServer][] = [
	["small", small],
	["large", large],
	["cheap", cheap],
	["gone", gone],
];

const model = (id: string, url: string, input: string, more: { parameters?: string } = {}) => `
  - id: ${id}
    kind: chat
    context_length: 8192
    max_output_tokens: 64
    parameters: [${more.parameters ?? "max_tokens"}]
    unsupported_parameters: reject
    rates: { input: "${input}", output: "2" }
    upstreams: [{ url: "${url}", model: served-name, dialect: openai }]`;

const service = await withService({
	models: `${model("small", small.url, "5")}
${model("large", large.url, "3", { parameters: "max_tokens, seed" })}
${model("cheap", cheap.url, "1")}
${model("gone", gone.url, "1")}
  - { id: bge, kind: embedding, rates: { input: "1" }, upstreams: [{ url: "${vectors.url}", model: b, dialect: openai }] }
routes:
  - { id: auto, name: Auto, models: [small, large, cheap] }
  - { id: auto:price, models: [small, large, cheap], by: price }
  - { id: auto:speed, models: [large, cheap], by: speed }
  - { id: auto:gone, models: [gone, cheap] }
  - { id: vectors, models: [bge] }`,
	limits: "  breaker_failures_in_row: 3\n  breaker_cool_s: 60\n  status_hold_s: 5",
});
afterEach(() => {
	for (const [, upstream] of all) upstream.always(() => reply());
});

async function post(secret: string, more: Record<string, unknown>, text = "one two three") {
	const response = await service.chat(secret, ask(text, { model: "auto", ...more }));
	return { response, served: response.headers.get("x-served-model") };
}

/** Charges of the account's usage rows in nano-dollars, by model, oldest first. */
async function charges(accountId: string) {
	await service.settled();
	const rows = await service.usage(accountId);
	return rows.map((row) => [row.model, Number(row.charged_nano_usd), row.ending]);
}

describe("a route that tries its models in the order of the file", () => {
	test("answers with its first model and names this model in a header", async () => {
		const { secret, accountId } = await service.customer();
		for (const stream of [false, true]) {
			const { response, served } = await post(secret, { stream });
			expect([response.status, served]).toEqual([200, "small"]);
			expect(await response.text()).toContain('"model":"small"');
		}
		expect((await charges(accountId)).map(([name]) => name)).toEqual(["small", "small"]);
	});

	test.each([true, false])("tries the next model after a failure that costs nothing (streamed %p)", async (stream) => {
		const { secret, accountId } = await service.customer();
		small.always(() => reply().errorStatus(500));
		const { response, served } = await post(secret, { stream, max_tokens: 8 });
		const text = await response.text();
		expect([response.status, served]).toEqual([200, "large"]);
		expect(text).toContain('"model":"large"');
		const rows = await charges(accountId);
		expect(rows).toEqual([
			["small", 0, "upstream_failed"],
			["large", expect.any(Number), "finished"],
		]);
		const [prompt, completion] = [6, 4];
		expect(rows[1]?.[1]).toBe(prompt * 3_000 + completion * 2_000);
		expect(Number((await service.balance(accountId)).spent)).toBe(Number(rows[1]?.[1]));
		const id = response.headers.get("x-request-id") as string;
		const usage = await (await service.get(`/v1/usage/${id}`, secret)).json();
		expect(usage).toMatchObject({ model: "large", status: "settled" });
	});

	test("skips a model that does not support the prompt's length or a field", async () => {
		const { secret } = await service.customer();
		expect((await post(secret, { seed: 7 })).served).toBe("large");
		const message = "This model's maximum context length is 400 tokens.";
		small.always(() => reply().errorStatus(400, { error: { message, code: "context_length_exceeded" } }));
		expect((await post(secret, {})).served).toBe("large");
	});

	test("uses only models that the key may use", async () => {
		const { secret } = await service.customer({ settings: { models: ["cheap"] } });
		expect((await post(secret, {})).served).toBe("cheap");
		const other = await service.customer({ settings: { models: ["gone"] } });
		const refused = await errorOf((await post(other.secret, {})).response);
		expect(refused).toMatchObject({ status: 403, error: { code: "model_not_allowed" } });
		await expectUncharged(service, other.accountId);
	});

	test("takes a cheaper model if the credit is too low for the first", async () => {
		const { secret } = await service.customer({ exactCredit: 600_000 });
		const { response, served } = await post(secret, { max_tokens: 1 });
		expect([response.status, served]).toEqual([200, "cheap"]);
	});

	test("sends an invalid request to no model", async () => {
		const { secret } = await service.customer();
		const before = large.requests.length + cheap.requests.length;
		const { response } = await post(secret, { max_tokens: -1 });
		expect((await errorOf(response)).status).toBe(400);
		expect(large.requests.length + cheap.requests.length).toBe(before);
	});

	test("returns a retryable error without a charge if all models fail", async () => {
		const { secret, accountId } = await service.customer();
		for (const [, upstream] of all) upstream.always(() => reply().errorStatus(429));
		const { response, served } = await post(secret, { max_tokens: 4 }, "word ".repeat(600));
		const refused = await errorOf(response);
		expect(refused).toMatchObject({ status: 503, error: { code: "overloaded" } });
		expect(refused.headers.get("retry-after")).not.toBeNull();
		expect(served).toBeNull();
		await expectUncharged(service, accountId);
	});

	test("counts once against a key's limits for each request", async () => {
		const { secret } = await service.customer({ settings: { requestsPerMinute: 1, concurrencyMax: 1 } });
		small.always(() => reply().errorStatus(500));
		expect((await post(secret, {})).served).toBe("large");
		expect((await post(secret, {})).response.status).toBe(429);
	});

	test("does not change its model once that model's stream has started", async () => {
		const { secret, accountId } = await service.customer();
		small.always(() => reply().text(["a ", "b ", "c "]).dieAfter(2));
		const { response, served } = await post(secret, { stream: true });
		expect([response.status, served]).toEqual([200, "small"]);
		expect(await response.text()).toContain('"error"');
		expect((await charges(accountId)).map(([name]) => name)).toEqual(["small"]);
	});
});

test("a route by price or by speed tries the cheapest or fastest model first", async () => {
	const { secret } = await service.customer();
	expect((await post(secret, { model: "auto:price" })).served).toBe("cheap");
	large.always(() => reply().text(["slow ", "words "]).delay(500));
	const served: (string | null)[] = [];
	for (let round = 0; round < 10; round += 1) {
		const answer = await post(secret, { model: "auto:speed" });
		await answer.response.text();
		served.push(answer.served);
		await service.settled();
	}
	// The speed estimate weights recent answers more, so the route has changed to the faster model.
	expect(served.slice(-4)).toEqual(["cheap", "cheap", "cheap", "cheap"]);
});

test("a route tries a model last if the breakers of all its servers are open", async () => {
	const { secret, accountId } = await service.customer();
	gone.always(() => reply().errorStatus(500));
	for (let round = 0; round < 8; round += 1) expect((await post(secret, { model: "auto:gone" })).served).toBe("cheap");
	const tries = (await charges(accountId)).filter(([name]) => name === "gone").length;
	expect(tries).toBeGreaterThan(0);
	expect(tries).toBeLessThan(8);
});

test("the list of models has routes with their models' highest limits and prices", async () => {
	const { secret } = await service.customer();
	const client = new OpenAI({ apiKey: secret, baseURL: `${service.url}/v1`, maxRetries: 0 });
	const listed: Record<string, unknown>[] = [];
	for await (const entry of client.models.list()) listed.push(entry as unknown as Record<string, unknown>);
	const auto = listed.find(({ id }) => id === "auto");
	expect(auto).toMatchObject({
		name: "Auto",
		kind: "chat",
		context_length: 8192,
		supported_parameters: ["max_tokens"],
		pricing: { prompt: "0.000005", completion: "0.000002" },
		rate_card: null,
		status: "connected",
		route: { models: ["small", "large", "cheap"], by: "listed" },
	});
	expect(await (await service.get("/v1/models/auto:price", secret)).json()).toMatchObject({
		id: "auto:price",
		route: { models: ["cheap", "large", "small"], by: "price" },
	});
});

test("the list of models of a key has each route with a model that the key may use", async () => {
	const all = await service.customer();
	const { id: projectId } = await createProject(service.db.statements, all.accountId, { name: "p", models: ["large"] });
	const cheap = await service.key(all.accountId, { models: ["cheap"] });
	const large = await service.key(all.accountId, { projectId });
	const both = await service.key(all.accountId, { models: ["cheap"], projectId });
	const seen = async (secret = "") => {
		const list = (await (await service.get("/v1/models", secret)).json()) as { data: Record<string, unknown>[] };
		const route = list.data.find(({ id }) => id === "auto") as { route: { models: string[] } } | undefined;
		const one = async (id: string) => (await service.get(`/v1/models/${encodeURIComponent(id)}`, secret)).status;
		return {
			ids: list.data.map(({ id }) => id),
			of: route?.route.models,
			found: await Promise.all(["cheap", "large", "auto", "auto:gone", "none"].map(one)),
		};
	};
	expect((await seen(all.secret)).found).toEqual([200, 200, 200, 200, 404]);
	expect(await seen(cheap.secret)).toEqual({
		ids: ["cheap", "auto", "auto:price", "auto:speed", "auto:gone"],
		of: ["cheap"],
		found: [200, 403, 200, 200, 404],
	});
	expect(await seen(large.secret)).toEqual({
		ids: ["large", "auto", "auto:price", "auto:speed"],
		of: ["large"],
		found: [403, 200, 200, 403, 404],
	});
	expect(await seen(both.secret)).toEqual({ ids: [], of: undefined, found: [403, 403, 403, 403, 404] });
});

test("a route without a model for the endpoint is refused", async () => {
	const { secret } = await service.customer();
	expect(await errorOf((await post(secret, { model: "vectors" })).response)).toMatchObject({
		status: 404,
		error: { code: "unsupported_mode", param: "model" },
	});
	const input = { model: "vectors", input: "hello" };
	const vectors = await service.post("/v1/embeddings", secret, input);
	expect([vectors.status, vectors.headers.get("x-served-model")]).toEqual([200, "bge"]);
});

describe("a route whose models fail in turn", () => {
	const models = ["one", "two", "three"].map((id) => modelOver([], { id })) as [Model, Model, Model];
	const route: Route = { id: "auto", name: "auto", models, by: "listed" };

	/** Sends a request over the route with a scripted fault for each model in turn. */
	async function failing(errors: readonly (() => Error)[]) {
		const road = createRoad();
		const { connection, leave } = fakeRequest({});
		const deps = { ...road.deps, upstreams: { ...road.deps.upstreams, connected: () => true } };
		const asked: string[] = [];
		const context = { ...createContext("chat", connection, road.clock), key: road.key };
		const response = await serveRoute(deps, chat, context, route, async (_, { id }) => {
			const error = errors[asked.push(id) - 1];
			if (error === undefined) leave();
			throw error?.() ?? new Fault("upstream_error", "The model server failed.");
		});
		const { error } = (await response.json()) as { error: { code: string } };
		return { asked, code: error.code };
	}
	const fault = (code: FaultCode) => () => new Fault(code, "No.");

	test.each([
		[["context_length_exceeded", "overloaded", "unsupported_parameter"], "overloaded"],
		[["context_length_exceeded", "unsupported_parameter", "model_not_allowed"], "context_length_exceeded"],
		[["upstream_timeout", "overloaded", "context_length_exceeded"], "upstream_timeout"],
		[["upstream_error", "unsupported_parameter", "invalid_request"], "invalid_request"],
		[["service_unavailable", "overloaded", "unsupported_parameter"], "overloaded"],
	] as const)("with the errors %j answers with %s", async (codes, told) => {
		const { asked, code } = await failing(codes.map(fault));
		expect(asked).toEqual(["one", "two", "three"]);
		expect(code).toBe(told);
	});

	test("tries no further model once the client has disconnected", async () => {
		const { asked } = await failing([fault("overloaded")]);
		expect(asked).toEqual(["one", "two"]);
	});
});
