import { describe, expect, test } from "bun:test";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { newRequestId } from "../../../src/base/id.ts";
import { usageAnswer } from "../../../src/gateway/lookups/usage-lookup.ts";
import { errorOf } from "../../support/chat.ts";
import { COST, withLookups } from "./lookups-world.ts";

const { service, complete } = await withLookups();

describe("GET /v1/usage/{id}", () => {
	test("answers immediately to the request's id and to the answer's id", async () => {
		const { secret, accountId } = await service.customer();
		const response = await complete(secret);
		const requestId = response.headers.get("x-request-id") as string;
		const { id } = await response.json();
		for (const name of [requestId, id]) {
			expect(await (await service.get(`/v1/usage/${name}`, secret)).json()).toEqual({
				id: requestId,
				object: "usage",
				created: expect.any(Number),
				model: "text",
				status: "settled",
				endpoint: "completions",
				streamed: false,
				basis: "exact",
				ending: "finished",
				http_status: 200,
				usage: {
					prompt_tokens: 3,
					completion_tokens: 3,
					total_tokens: 6,
					prompt_tokens_details: { cached_tokens: 0 },
					completion_tokens_details: { reasoning_tokens: 0 },
					units: 0,
				},
				cost_usd: COST,
				reserved_usd: expect.stringMatching(/^\d+\.\d+$/),
				rate_card: "text@1",
				batch_id: null,
			});
		}
		expect(accountId).toBeString();
	});

	test.each([-30_000, 30_000])("waits for a recent request although its clock is %i ms off", async (ms) => {
		const { accountId, keyId } = await service.customer();
		const { uuid, requestId } = newRequestId();
		let waits = 0;
		const clock: Clock = {
			...systemClock,
			wallMs: () => systemClock.wallMs() + ms,
			// Inserts the reservation at the look-up's third wait, which proves that the look-up has waited for a recent id.
			after(delayMs, run) {
				if (++waits !== 3) return systemClock.after(delayMs, run);
				void service.db.sql`
					insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at)
					values (${uuid}, ${accountId}, ${keyId}, 'other', 1, 'text', 5000, now())`.then(run);
				return () => {};
			},
		};
		const { statements } = service.db;
		expect(await usageAnswer({ statements, clock }, accountId, requestId)).toMatchObject({
			id: requestId,
			status: "running",
		});
	});

	test("returns 404 for other accounts, refused requests and malformed ids", async () => {
		const { secret } = await service.customer();
		const stranger = await service.customer();
		const done = await complete(secret);
		await done.text();
		const refused = await service.post("/v1/completions", secret, {});
		const foreign = done.headers.get("x-request-id");
		const ids = [foreign, refused.headers.get("x-request-id"), "nonsense", "%E0%A4%A", "a/b", `req_${"0".repeat(32)}`];
		for (const id of ids) {
			const response = await service.get(`/v1/usage/${id}`, stranger.secret);
			expect(response.status).toBe(404);
			expect((await response.json()).error.code).toBe("not_found");
		}
		expect((await service.get(`/v1/usage/${foreign}`)).status).toBe(401);
	});
});

test("a request for a model without a reachable server gets a 503 that may be retried", async () => {
	const { secret } = await service.customer();
	const response = await service.post("/v1/rerank", secret, { model: "gone", query: "q", documents: ["a"] });
	expect(await errorOf(response)).toMatchObject({ status: 503, error: { code: "service_unavailable" } });
	expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
});

describe("a service without models for an endpoint", () => {
	test.each([
		["/v1/embeddings", { model: "x", input: "y" }],
		["/v1/embeddings", {}],
		["/v1/images/generations", { model: "x", prompt: "y" }],
		["/v1/audio/transcriptions", {}],
		["/v1/files", {}],
		["/v1/batches", { input_file_id: "x" }],
		["/v1/batches/batch_1/cancel", {}],
	])("answers POST %s with 503 and x-should-retry: false", async (path, body) => {
		const { secret } = await service.customer();
		const { status, error, headers } = await errorOf(await service.post(path, secret, body));
		expect([status, headers.get("x-should-retry")]).toEqual([503, "false"]);
		expect(error).toMatchObject({ code: "service_unavailable", type: "server_error" });
		expect((await service.post(path, undefined, body)).status).toBe(401);
	});

	test("answers requests for the lists of files and batches with the same 503", async () => {
		const { secret } = await service.customer();
		for (const path of [
			"/v1/files",
			"/v1/files/file_1",
			"/v1/files/file_1/content",
			"/v1/batches",
			"/v1/batches/batch_1",
		])
			expect((await service.get(path, secret)).status).toBe(503);
	});
});

describe("GET /status", () => {
	test("returns JSON to programs and a page to browsers", async () => {
		const json = await service.get("/status");
		expect(json.headers.get("content-type")).toBe("application/json");
		const answer = await json.json();
		expect(answer).toMatchObject({
			object: "status",
			status: "degraded",
			services: {
				chat: "connected",
				completions: "connected",
				embeddings: "unavailable",
				transcription: "unavailable",
				image_generation: "unavailable",
				rerank: "unavailable",
				batch: "unavailable",
			},
			models: [
				{ id: "text", kind: "chat", status: "connected" },
				{ id: "gone", kind: "rerank", status: "unavailable" },
			],
		});
		const page = await fetch(`${service.url}/status`, {
			headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" },
		});
		expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
		const html = await page.text();
		expect(html).toContain("Some services are not connected");
		expect(html).not.toContain("<script");
		const policy = page.headers.get("content-security-policy") as string;
		expect(policy).toContain("default-src 'none'");
		const style = /<style>([\s\S]*)<\/style>/.exec(html)?.[1] as string;
		expect(policy).toContain(`'sha256-${new Bun.CryptoHasher("sha256").update(style).digest("base64")}'`);
		const both = await fetch(`${service.url}/status`, { headers: { accept: "application/json, text/html;q=0.5" } });
		expect(both.headers.get("content-type")).toBe("application/json");
	});
});
