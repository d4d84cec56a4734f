import { describe, expect, test } from "bun:test";
import { silentLog } from "../../../src/base/log.ts";
import { createIdempotency } from "../../../src/gateway/idempotency/idempotency.ts";
import {
	type ClaimStore,
	createRunningClaims,
	type IdempotencyClaim,
} from "../../../src/gateway/idempotency/running.ts";
import { INFERENCE_ENDPOINTS } from "../../../src/gateway/inference.ts";
import { nanoUsd } from "../../../src/money/nano-usd.ts";
import { plainKey } from "../../support/plain-key.ts";
import { createRoad, roadModel } from "../../support/road.ts";
import { withService } from "../../support/service.ts";
import { brokenSse, deployment, wavOf, withEndpoints } from "../../support/upstream-endpoints.ts";
import { waitFor } from "../../support/wait.ts";

const CHAT = INFERENCE_ENDPOINTS["/v1/chat/completions"];
const upstream = withEndpoints("vllm");
const at = { url: upstream.url, dialect: "vllm" as const };
const rates = 'input: "1", output: "2"';
const service = await withService({
	models: [
		deployment({ id: "text", ...at, rates, parameters: "max_tokens" }),
		deployment({ id: "audio", kind: "transcription", ...at, rates: 'audio_second: "0.001"' }),
	].join("\n"),
	limits: "  breaker_failures_in_row: 100",
});

function complete(secret: string, key: string, more: object = {}, init: RequestInit = {}) {
	const headers = { "idempotency-key": key };
	return service.post("/v1/completions", secret, { model: "text", prompt: "a b c", ...more }, { headers, ...init });
}

async function rows(accountId: string) {
	await service.settled();
	return service.usage(accountId);
}

test("another body with the same Idempotency-Key is refused while the first runs", async () => {
	const { secret } = await service.customer();
	const go = Promise.withResolvers<void>();
	const before = upstream.requests.length;
	upstream.next(() => go.promise.then(() => Response.json({ choices: [{ text: "hi", finish_reason: "stop" }] })));
	const first = complete(secret, "slow");
	await upstream.waitForRequest(before + 1);
	expect((await complete(secret, "slow", { prompt: "z" })).status).toBe(422);
	go.resolve();
	expect((await first).status).toBe(200);
});

test("repeated answers and refusals have current rate limit headers", async () => {
	const { secret } = await service.customer({ settings: { requestsPerMinute: 10 } });
	const standing = async (response: Response) => {
		await response.text();
		const header = (name: string) => response.headers.get(`x-ratelimit-${name}-requests`);
		return [response.status, header("limit"), header("remaining"), header("reset") !== null];
	};
	expect(await standing(await complete(secret, "s1"))).toEqual([200, "10", "9", true]);
	expect(await standing(await complete(secret, "s2"))).toEqual([200, "10", "8", true]);
	expect(await standing(await complete(secret, "s1"))).toEqual([200, "10", "8", true]);
	expect(await standing(await complete(secret, "s1", { prompt: "another" }))).toEqual([422, "10", "8", true]);
});

test("a failed request runs again when it is repeated with its Idempotency-Key", async () => {
	const { secret, accountId } = await service.customer();
	upstream.next(() => Response.json({ error: { message: "no" } }, { status: 500 }));
	expect((await complete(secret, "f")).status).toBe(502);
	expect((await complete(secret, "f")).status).toBe(200);
	// Repeating an interrupted stream runs the request again, as after any failure.
	const event = JSON.stringify({ choices: [{ index: 0, text: "x", finish_reason: null }] });
	upstream.next(() => brokenSse([event]));
	expect(await (await complete(secret, "s", { stream: true })).text()).toContain('{"error":');
	expect(await (await complete(secret, "s", { stream: true })).text()).not.toContain('{"error":');
	expect(await rows(accountId)).toHaveLength(4);
});

test("a client that left its stream may repeat the request and gets an answer", async () => {
	const { secret } = await service.customer();
	const event = JSON.stringify({ choices: [{ index: 0, text: "x", finish_reason: null }] });
	upstream.next(() => brokenSse([event], { stall: new Promise(() => {}) }));
	const leave = new AbortController();
	const response = await complete(secret, "left", { stream: true }, { signal: leave.signal });
	await response.body?.getReader().read();
	leave.abort();
	await waitFor(async () => {
		const again = await complete(secret, "left", { stream: true });
		await again.text();
		return again.status === 200;
	}, "the key to be free again");
});

test.each(["x".repeat(300), "a b"])("a malformed Idempotency-Key gets a 400 (%s)", async (key) => {
	const { secret } = await service.customer();
	expect((await complete(secret, key)).status).toBe(400);
});

test("a form repeated with another boundary counts as the same request", async () => {
	const { secret, accountId } = await service.customer();
	const send = (key: string, seconds: number, more: Record<string, string> = {}) => {
		const form = new FormData();
		form.append("file", new File([wavOf(seconds)], "a.wav"));
		for (const [name, value] of Object.entries({ model: "audio", ...more })) form.append(name, value);
		return service.post("/v1/audio/transcriptions", secret, form, { headers: { "idempotency-key": key } });
	};
	const first = await (await send("anew", 2)).text();
	expect(first).toContain("Hello");
	const again = await send("anew", 2);
	expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
	expect(await again.text()).toBe(first);
	expect(await rows(accountId)).toHaveLength(1);
	expect((await send("anew", 3)).status).toBe(422);
	expect((await send("anew", 2, { language: "en" })).status).toBe(422);
	expect((await send("anew", 2, { model: "text" })).status).toBe(422);
});

test("a form of equal bytes with another declared boundary is another request", async () => {
	const { secret } = await service.customer();
	const part = (boundary: string, head: string, content: string | Uint8Array) =>
		Buffer.concat([
			Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`),
			Buffer.from(content),
			Buffer.from("\r\n"),
		]);
	const wav = 'name="file"; filename="a.wav"\r\ncontent-type: audio/wav';
	const model = (boundary: string) => part(boundary, 'name="model"', "audio");
	const ended = (boundary: string) => Buffer.from(`--${boundary}--\r\n`);
	const one = Buffer.concat([part("one", wav, wavOf(2)), model("one"), ended("one")]);
	const two = Buffer.concat([part("two", wav, wavOf(5)), model("two"), ended("two")]);
	const body = Buffer.concat([one, two]);
	const send = (boundary: string) =>
		service.post("/v1/audio/transcriptions", secret, "", {
			headers: { "content-type": `multipart/form-data; boundary=${boundary}`, "idempotency-key": "both" },
			body,
		});
	expect((await send("one")).status).toBe(200);
	expect((await send("two")).status).toBe(422);
});

describe("a request with an Idempotency-Key", () => {
	/** The request handler with claims in memory. It calls `whileRead` while it reads the body. */
	function repeatable(key = plainKey(), storedBytesMax?: number) {
		const road = createRoad();
		const { deps, clock } = road;
		const claims = claimsInMemory();
		const running = createRunningClaims({ claims, clock, log: silentLog }, storedBytesMax);
		let authenticated = 0;
		const authenticate = () => {
			authenticated += 1;
			return key;
		};
		const all = {
			...deps,
			authenticate,
			idempotency: createIdempotency({ ...deps, ...deps.clients, limits: deps.catalog.limits, claims, running }),
		};
		const text = JSON.stringify({ model: roadModel.id, messages: [{ role: "user", content: "Hello" }] });
		const send = (whileRead = () => {}) => {
			const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
				whileRead();
				controller.enqueue(new TextEncoder().encode(text));
				controller.close();
			};
			const body = new ReadableStream({ pull }, { highWaterMark: 0 });
			const headers = { "idempotency-key": "k", authorization: "Bearer sk_test", "content-type": "application/json" };
			const request = new Request("http://localhost/v1/chat/completions", { method: "POST", headers, body });
			return CHAT.answer(all, { request, address: "127.0.0.1", setIdleTimeout: () => {} });
		};
		return { road, send, clock, authenticated: () => authenticated };
	}

	test("authenticates once and reads its body once", async () => {
		const { road, send, authenticated } = repeatable();
		let reads = 0;
		const answer = send(() => {
			reads += 1;
		});
		(await road.call()).reply(2);
		expect((await answer).status).toBe(200);
		expect([authenticated(), reads, road.calls.length]).toEqual([1, 1, 1]);
	});

	test("can be repeated although the first request has run for more than a minute", async () => {
		const { road, send, clock } = repeatable();
		const first = send();
		const call = await road.call();
		const timers = clock.pending();
		let second: Response | undefined;
		void send().then((response) => {
			second = response;
		});
		await waitFor(() => clock.pending() > timers, "the second to wait");
		for (let s = 0; s < 60; s++) {
			expect(second).toBeUndefined();
			clock.advance(1_000);
			await Bun.sleep(0);
		}
		await waitFor(() => second !== undefined, "the answer of one that waited");
		expect([second?.status, second?.headers.get("retry-after"), second?.headers.get("x-should-retry")]).toEqual([
			409,
			"1",
			null,
		]);
		call.reply(2);
		expect((await first).status).toBe(200);
	});

	test("waits only while its account has fewer than a quarter of all waiting requests", async () => {
		const { road, send, clock } = repeatable();
		const first = send();
		const call = await road.call();
		const timers = clock.pending();
		const waiting = Array.from({ length: 250 }, () => send());
		await waitFor(() => clock.pending() >= timers + 250, "250 repetitions to wait");
		expect((await send()).status).toBe(409);
		call.reply(2);
		await (await first).text();
		const answers = await Promise.all(waiting);
		expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
	});

	test("is answered but not stored above the limit, and its repetition gets 409", async () => {
		const { road, send } = repeatable(plainKey(), 16);
		const first = send();
		(await road.call()).reply(2);
		expect((await first).status).toBe(200);
		const second = await send();
		expect(second.status).toBe(409);
		expect(await second.text()).toContain("its answer was not stored. It was charged USD 0.000005.");
	});

	test("gets no kept answer if its API key is revoked while the body is read", async () => {
		const key = plainKey();
		const { road, send } = repeatable(key);
		const first = send();
		(await road.call()).reply(2);
		await (await first).text();
		expect((await send()).headers.get("idempotent-replayed")).toBe("true");
		expect((await send(() => void Object.assign(key, { state: "revoked" }))).status).toBe(401);
		// The refusal is in the account's log, where the key's owner can find it.
		expect(road.refused.at(-1)?.code).toBe("api_key_revoked");
	});
});

/** A store of claims in memory, without other instances. */
function claimsInMemory(): ClaimStore {
	const all = new Map<string, { claim: IdempotencyClaim; sealed?: Uint8Array | null }>();
	return {
		async claim(claim) {
			const known = all.get(claim.id);
			if (known === undefined) {
				all.set(claim.id, { claim });
				return { state: "new" };
			}
			if (known.sealed === null)
				return { state: "unkept", requestUuid: known.claim.requestUuid, charged: nanoUsd(5_000) };
			return known.sealed === undefined ? { state: "running" } : { state: "answered", sealed: known.sealed };
		},
		async keep(claim, sealed) {
			all.set(claim.id, { claim, sealed });
		},
		release: async ({ id }) => void all.delete(id),
	};
}
