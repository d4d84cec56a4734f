import { describe, expect, test } from "bun:test";
import { INFERENCE_ENDPOINTS } from "../../../src/gateway/inference.ts";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { parseRaw } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import { withUpstream } from "../../support/upstream-server.ts";

const upstream = withUpstream();
const completionsOnly = chatModel({ id: "old-model", url: upstream.url }).replace(
	"[chat, completions]",
	"[completions]",
);
const retired = `${chatModel({ id: "gone-model", url: upstream.url })}\n    retires_on: 2020-01-01`;
const service = await withService({
	models: `${chatModel({ url: upstream.url })}\n${completionsOnly}\n${retired}`,
	limits: "  body_mb: 1",
});
const MB = 1024 * 1024;
const customer = await service.customer();

test("an unknown model gets 404 model_not_found with its shortened name", async () => {
	for (const model of ["gpt-4o", "x".repeat(100_000), "../etc/passwd", "\u0000"]) {
		const { status, error } = await errorOf(await service.chat(customer.secret, ask("hi", { model })));
		expect(status).toBe(404);
		expect(error).toMatchObject({ code: "model_not_found", type: "invalid_request_error", param: "model" });
		expect((error.message as string).length).toBeLessThan(300);
	}
	const { error } = await errorOf(await service.get("/v1/models/no/such", customer.secret));
	expect(error).toMatchObject({ code: "model_not_found", param: "model" });
});

test("a retired model gets 404 model_not_found with its day of retirement", async () => {
	const asked = await service.chat(customer.secret, ask("hi", { model: "gone-model" }));
	for (const answer of [asked, await service.get("/v1/models/gone-model", customer.secret)]) {
		const { status, error } = await errorOf(answer);
		expect(status).toBe(404);
		expect(error).toMatchObject({ code: "model_not_found", type: "invalid_request_error", param: "model" });
		expect(error.message).toBe("The model `gone-model` was retired on 2020-01-01: see GET /v1/models.");
	}
	const list = (await (await service.get("/v1/models", customer.secret)).json()) as { data: { id: string }[] };
	expect(list.data.map(({ id }) => id)).toEqual(["test-model", "old-model"]);
});

test("a model that supports no chats gets 404 unsupported_mode", async () => {
	const { status, error } = await errorOf(await service.chat(customer.secret, ask("hi", { model: "old-model" })));
	expect(status).toBe(404);
	expect(error).toMatchObject({ code: "unsupported_mode", type: "invalid_request_error", param: "model" });
});

describe("404 not_found", () => {
	test("is the answer to a request with an unknown path", async () => {
		for (const path of [
			"/v1",
			"/v1/",
			"/v1/nothing",
			"/v1/chat",
			"/v2/chat/completions",
			"/nothing",
			"/v1/chat/completions/x",
			"/v1//chat/completions",
		]) {
			const { status, error } = await errorOf(await service.get(path, customer.secret));
			expect([path, status]).toEqual([path, 404]);
			expect(error).toMatchObject({ code: "not_found", type: "invalid_request_error", param: null });
		}
		expect((await errorOf(await service.get("/v1/nothing"))).status).toBe(404);
	});

	test("explains a base URL with a missing or doubled /v1", async () => {
		const offered = Object.keys(INFERENCE_ENDPOINTS);
		for (const path of offered.flatMap((one) => [one.slice("/v1".length), `/v1${one}`])) {
			const { status, error } = await errorOf(await service.post(path, customer.secret, ask("hi")));
			expect([path, status, error.code]).toEqual([path, 404, "not_found"]);
			expect(error.message).toContain("ends with /v1, once");
		}
	});

	test("explains a path of the console that is requested with an API key", async () => {
		for (const path of ["/models", "/chat/completions", "/", "/keys", "/v1", "/v2/models"]) {
			for (const method of ["GET", "POST", "OPTIONS"]) {
				const headers = { authorization: `bearer ${customer.secret}`, accept: "text/html" };
				const { status, error } = await errorOf(await fetch(`${service.url}${path}`, { method, headers }));
				expect([path, method, status, error.code]).toEqual([path, method, 404, "not_found"]);
				expect(error.message).toContain("ends with /v1, once");
			}
		}
		const page = await fetch(`${service.url}/models`, { headers: { accept: "text/html" } });
		expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
	});

	test("explains a doubled slash in the path", async () => {
		for (const path of ["/v1//chat/completions", "/v1//models", "/x//y"]) {
			const { status, error } = await errorOf(await service.post(path, customer.secret, ask("hi")));
			expect([path, status, error.code]).toEqual([path, 404, "not_found"]);
			expect(error.message).toContain("`//`");
		}
	});

	test("suggests an existing path for each path that does not exist", async () => {
		const paths = [
			...["responses", "assistants", "threads/x/runs", "messages"],
			"chat/completions/chatcmpl-1",
			"images/edits",
			"images/variations",
			"audio/speech",
			"audio/translations",
			"moderations",
			"vector_stores",
			"vector_stores/vs_1/files",
			"fine_tuning/jobs",
			"realtime",
			"realtime/sessions",
			"conversations",
			"uploads",
			"evals",
			"containers",
			"organization/costs",
			"dashboard/billing/credit_grants",
			"videos",
			"engines",
		];
		for (const path of paths) {
			const { status, error } = await errorOf(await service.get(`/v1/${path}`, customer.secret));
			expect([path, status]).toEqual([path, 404]);
			const offered = (error.message as string).match(/\/v1\/[a-z_/]+/g) ?? [];
			expect([path, offered.length > 0]).toEqual([path, true]);
			for (const other of offered.filter((name) => name !== "/v1/usage/"))
				expect([other, (await service.get(other, customer.secret)).status]).not.toEqual([other, 404]);
		}
	});
});

test("a wrong method gets 405 method_not_allowed with the allowed method", async () => {
	const cases = [
		["GET", "/v1/chat/completions", "POST"],
		["DELETE", "/v1/chat/completions", "POST"],
		["PUT", "/v1/chat/completions/?a=b", "POST"],
		["POST", "/v1/models", "GET"],
		["DELETE", "/v1/models/test-model", "GET"],
	];
	for (const [method = "", path = "", allowed = ""] of cases) {
		const response = await fetch(`${service.url}${path}`, {
			method,
			headers: { authorization: `Bearer ${customer.secret}` },
		});
		const { status, error, headers } = await errorOf(response);
		expect(status).toBe(405);
		expect(error).toMatchObject({ code: "method_not_allowed", type: "invalid_request_error", param: null });
		expect(headers.get("allow")).toBe(allowed);
	}
});

describe("413 payload_too_large", () => {
	test("refuses a body by its declared length before the client sends it", async () => {
		const client = await service.openChat(customer.secret, "{", { "content-length": String(2 * MB) });
		await client.until('"payload_too_large"');
		const { status, headers, body } = parseRaw(client.text());
		client.leave();
		expect(status).toBe(413);
		expect(headers.get("x-request-id")).toMatch(/^req_/);
		expect(JSON.parse(body)).toMatchObject({
			error: { type: "invalid_request_error", param: null, code: "payload_too_large" },
		});
	});

	test("refuses a body that the client sent completely", async () => {
		const { status, error } = await errorOf(await service.chat(customer.secret, ask("x".repeat(2 * MB))));
		expect(status).toBe(413);
		expect(error).toMatchObject({ code: "payload_too_large", type: "invalid_request_error" });
	});

	test("accepts a body just below the limit", async () => {
		const { status, error } = await errorOf(
			await service.chat(customer.secret, ask("x".repeat(MB - 1_000), { model: "none" })),
		);
		expect([status, error.code]).toEqual([404, "model_not_found"]);
	});
});

describe("415 unsupported_media_type", () => {
	const packed = (path: string, coding: string, type: string) =>
		fetch(`${service.url}${path}`, {
			method: "POST",
			headers: { authorization: `Bearer ${customer.secret}`, "content-type": type, "content-encoding": coding },
			body: JSON.stringify(ask("hi", { model: "none" })),
		});

	test.each(["gzip", "br", "zstd", "deflate", "x-other", "identity, gzip"])(
		"names the refused content coding %s",
		async (coding) => {
			for (const path of ["/v1/chat/completions", "/v1/completions"]) {
				const { status, error, headers } = await errorOf(await packed(path, coding, "application/json"));
				expect([status, error.code, error.param]).toEqual([415, "unsupported_media_type", "content-encoding"]);
				expect(headers.get("accept-encoding")).toBe("identity");
			}
		},
	);

	test("has no Accept-Encoding header if only the content type is wrong", async () => {
		const { status, headers } = await errorOf(await packed("/v1/chat/completions", "identity", "text/plain"));
		expect([status, headers.get("accept-encoding")]).toEqual([415, null]);
	});

	test("is not returned for the content coding `identity`", async () => {
		expect((await packed("/v1/chat/completions", "identity", "application/json")).status).toBe(404);
	});
});

test("a refused request is not charged and not sent to a model server", async () => {
	await expectUncharged(service, customer.accountId);
	expect(upstream.requests).toHaveLength(0);
});
