import { describe, expect, test } from "bun:test";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";

const upstream = withUpstream();
const service = await withService({
	models: `${chatModel({ url: upstream.url })}\n${chatModel({ id: "narrow-model", url: upstream.url })}\n        max_concurrency: 1`,
	limits: "  auth_failures_per_minute: 20\n  queue_length: 0",
});

const post = (secret: string, body: unknown = ask()) => service.chat(secret, body);

describe("429 rate_limit_exceeded", () => {
	test("has rate limit headers, as every answer of a limited key", async () => {
		const { secret } = await service.customer({ settings: { requestsPerMinute: 4 } });
		const standing = async (response: Response) => {
			await response.text();
			const header = (name: string) => response.headers.get(`x-ratelimit-${name}-requests`);
			return [response.status, header("limit"), header("remaining"), /^[12]m\d+s$/.test(header("reset") ?? "")];
		};
		expect(await standing(await post(secret))).toEqual([200, "4", "3", true]);
		expect(await standing(await post(secret, ask("hi", { stream: true })))).toEqual([200, "4", "2", true]);
		expect(await standing(await post(secret, ask("hi", { n: 0 })))).toEqual([400, "4", "2", true]);
		expect(await standing(await post(secret, ask("hi", { model: "unknown" })))).toEqual([404, "4", "2", true]);
		upstream.next(reply().errorStatus(500));
		expect((await standing(await post(secret))).slice(0, 3)).toEqual([502, "4", "1"]);
		expect((await standing(await post(secret))).slice(1, 3)).toEqual(["4", "0"]);
		const last = await post(secret);
		const { error, headers } = await errorOf(last.clone());
		expect(error).toMatchObject({ code: "rate_limit_exceeded", type: "rate_limit_error", param: null });
		expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
		expect((await standing(last)).slice(0, 3)).toEqual([429, "4", "0"]);
		const free = await service.customer();
		expect((await standing(await post(free.secret))).slice(1)).toEqual([null, null, false]);
	});

	test("refuses requests above the concurrency limit until one ends", async () => {
		const { accountId, secret } = await service.customer({ settings: { concurrencyMax: 2 } });
		upstream.next(reply().text("a b c").stallAfter(1), reply().hang());
		const leave = new AbortController();
		const seen = upstream.requests.length;
		const streamed = await service.chat(secret, ask("hi", { stream: true }), { signal: leave.signal });
		const unary = service.chat(secret, ask(), { signal: leave.signal }).catch(() => undefined);
		await upstream.waitForRequest(seen + 2);
		const { status, error, headers } = await errorOf(await post(secret));
		expect([status, error.code, headers.get("retry-after")]).toEqual([429, "rate_limit_exceeded", "1"]);
		leave.abort();
		await unary;
		await streamed.body?.cancel().catch(() => {});
		await service.settled();
		const after = await post(secret);
		expect(after.status).toBe(200);
		await after.text();
		await service.settled();
		expect(await service.usage(accountId)).toHaveLength(3);
	});

	test("replaces 401 for an address with many failed attempts, but never for valid keys", async () => {
		const { secret } = await service.customer();
		const codes: unknown[] = [];
		for (let attempt = 0; attempt < 30; attempt++) {
			const { error, headers } = await errorOf(await service.get("/v1/models", "sk_service_wrong"));
			codes.push(error.code);
			if (error.code === "rate_limit_exceeded") expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
		}
		expect(codes.filter((code) => code === "invalid_api_key")).toHaveLength(20);
		expect(codes.slice(20)).toEqual(Array.from({ length: 10 }, () => "rate_limit_exceeded"));
		expect((await service.get("/v1/models", secret)).status).toBe(200);
	});
});

describe("503 overloaded", () => {
	test("is returned if the server's concurrency is used up and no request may wait", async () => {
		const { accountId, secret } = await service.customer();
		upstream.next(reply().hang());
		const seen = upstream.requests.length;
		const leave = new AbortController();
		const first = service
			.chat(secret, ask("hi", { model: "narrow-model" }), { signal: leave.signal })
			.catch(() => undefined);
		await upstream.waitForRequest(seen + 1);
		const { status, error } = await errorOf(await post(secret, ask("hi", { model: "narrow-model" })));
		expect([status, error.code]).toEqual([503, "overloaded"]);
		leave.abort();
		await first;
		await expectUncharged(service, accountId);
	});
});
