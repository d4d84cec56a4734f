import { describe, expect, test } from "bun:test";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { openRaw, parseRaw, rawPost } from "../../support/raw-http.ts";
import { withChat } from "../../support/service.ts";

const MB = 1024 * 1024;

const { upstream, service } = await withChat({ limits: "  body_mb: 1" });
const customer = await service.customer();

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
	test("refuses a body by its declared length before it is sent", async () => {
		const client = await openRaw(
			service.url,
			rawPost("/v1/chat/completions", customer.secret, "{", { "content-length": String(2 * MB) }),
		);
		await client.until('"payload_too_large"');
		const { status, headers, body } = parseRaw(client.text());
		client.leave();
		expect(status).toBe(413);
		expect(headers.get("x-request-id")).toMatch(/^req_/);
		expect(JSON.parse(body)).toMatchObject({
			error: { type: "invalid_request_error", param: null, code: "payload_too_large" },
		});
	});

	test("refuses a body that was sent completely", async () => {
		const { status, error } = await errorOf(
			await service.post("/v1/chat/completions", customer.secret, ask("x".repeat(2 * MB))),
		);
		expect(status).toBe(413);
		expect(error).toMatchObject({ code: "payload_too_large", type: "invalid_request_error" });
	});

	test("accepts a body just below the limit", async () => {
		const { status, error } = await errorOf(
			await service.post("/v1/chat/completions", customer.secret, ask("x".repeat(MB - 1_000), { model: "none" })),
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

test("no refused request reached a model server or was charged", async () => {
	await expectUncharged(service, customer.accountId);
	expect(upstream.requests).toHaveLength(0);
});
