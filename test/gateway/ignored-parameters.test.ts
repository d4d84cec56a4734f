import { expect, test } from "bun:test";
import { nextTurn } from "../../src/base/time-slice.ts";
import { ask, errorOf } from "../support/chat.ts";
import { chatModel, withService } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";

const upstream = withUpstream();
const service = await withService({
	models: `${chatModel({ url: upstream.url })}\n${chatModel({ id: "strict-model", url: upstream.url, extra: "    unsupported_parameters: reject" })}`,
});
const secret = (await service.customer()).secret;

const post = (body: Record<string, unknown>) => service.chat(secret, body);

test("optional fields that a model does not support are dropped and named in a header", async () => {
	for (const stream of [false, true]) {
		const response = await post(ask("hi", { stream, top_k: 1, made_up: 1, temperature: 0.5, user: null }));
		await response.text();
		expect([response.status, response.headers.get("x-ignored-parameters")]).toEqual([200, "top_k, made_up"]);
		const { body } = upstream.requests.at(-1) ?? {};
		expect(Object.keys(body ?? {}).sort()).toEqual(
			["max_tokens", "messages", "model", "stream", "temperature", ...(stream ? ["stream_options"] : [])].sort(),
		);
	}
});

test("no header names ignored fields if all are supported", async () => {
	const response = await post(ask("hi", { temperature: 0.5, max_tokens: 5, seed: 1, top_p: null }));
	await response.text();
	expect(response.headers.has("x-ignored-parameters")).toBe(false);
});

test("concurrent requests each get the names of their own ignored fields", async () => {
	const limited = await service.customer({ settings: { requestsPerMinute: 1_000 } });
	const from = upstream.requests.length;
	const answers = await Promise.all(
		Array.from({ length: 24 }, async (_, at) => {
			const stream = at % 3 === 0;
			const ignored = at % 4 === 0 ? { [`made_up_${at}`]: 1 } : {};
			const key = at % 2 === 0 ? secret : limited.secret;
			const response = await service.chat(key, ask(`hi ${at}`, { stream, ...ignored }));
			await nextTurn();
			return { at, headers: response.headers, text: await response.text() };
		}),
	);
	for (const { at, headers, text } of answers) {
		expect(headers.get("content-type")).toBe(at % 3 === 0 ? "text/event-stream; charset=utf-8" : "application/json");
		expect(text).toContain((headers.get("x-request-id") as string).replace("req_", "chatcmpl-"));
		expect(headers.get("x-ignored-parameters")).toBe(at % 4 === 0 ? `made_up_${at}` : null);
		expect(headers.has("x-ratelimit-limit-requests")).toBe(at % 2 === 1);
	}
	const sent = upstream.requests.slice(from).map(({ headers }) => headers.get("x-request-id")?.replaceAll("-", ""));
	expect(sent.toSorted()).toEqual(
		answers.map(({ headers }) => (headers.get("x-request-id") as string).replace("req_", "")).toSorted(),
	);
});

test("the header of ignored fields omits unsafe names, and counts the names of many", async () => {
	const names = [
		"a\r\nset-cookie: x=1",
		"ü",
		"a b",
		"x".repeat(65),
		...Array.from({ length: 30 }, (_, at) => `p${at}`),
	];
	const response = await post(ask("hi", Object.fromEntries(names.map((name) => [name, 1]))));
	await response.text();
	expect(response.status).toBe(200);
	const header = response.headers.get("x-ignored-parameters") ?? "";
	expect(header).toBe(`${Array.from({ length: 20 }, (_, at) => `p${at}`).join(", ")}, +14`);
	expect(response.headers.has("set-cookie")).toBe(false);
});

test("a model set to reject unsupported fields names the field, and sends nothing", async () => {
	const before = upstream.requests.length;
	const { status, error } = await errorOf(await post(ask("hi", { model: "strict-model", made_up: 1 })));
	expect(status).toBe(400);
	expect(error).toMatchObject({ code: "unsupported_parameter", type: "invalid_request_error", param: "made_up" });
	expect(upstream.requests.length).toBe(before);
	const honoured = await post(ask("hi", { model: "strict-model", temperature: 1, made_up: null }));
	await honoured.text();
	expect(honoured.status).toBe(200);
});

test("a client cannot set the fields on which the reserved amount depends", async () => {
	const response = await post(
		ask("hi", {
			max_tokens: 7,
			n_predict: 9_999,
			num_predict: 9_999,
			stream: true,
			stream_options: { include_usage: false, include_obfuscation: true, continuous_usage_stats: true },
		}),
	);
	await response.text();
	expect(upstream.requests.at(-1)?.body).toEqual({
		model: "served-name",
		messages: ask("hi").messages,
		max_tokens: 7,
		stream: true,
		stream_options: { include_usage: true },
	} as never);
});
