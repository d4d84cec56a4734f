import { expect, test } from "bun:test";
import { withService } from "../support/service.ts";
import { deployment, wavOf, withEndpoints } from "../support/upstream-endpoints.ts";

const KEY = "canary-upstream-key-5f1c";
const PROMPT = "canary-prompt-81d2";
const ANSWER = "canary-answer-77aa";

const upstream = withEndpoints("vllm");
const at = { url: upstream.url, dialect: "vllm" as const, apiKey: KEY };
const tokens = 'input: "1", output: "2"';
const service = await withService({
	models: [
		deployment({ id: "text", ...at, rates: tokens, parameters: "max_tokens" }),
		// Each kind of answer has its own model, so that failures of one kind do not open the circuit breaker of another.
		deployment({ id: "streamed", ...at, rates: tokens, parameters: "max_tokens" }),
		deployment({ id: "embedding", kind: "embedding", ...at, rates: 'input: "1"' }),
		deployment({ id: "rerank", kind: "rerank", ...at, rates: 'search: "0.001"' }),
		deployment({ id: "image", kind: "image", ...at, rates: 'image: "0.01"' }),
		deployment({ id: "audio", kind: "transcription", ...at, rates: 'audio_second: "0.001"' }),
	].join("\n"),
	limits: "  breaker_failures_in_row: 1000",
});

function form(): FormData {
	const body = new FormData();
	body.append("file", new File([wavOf(1)], "talk.wav"));
	body.append("model", "audio");
	body.append("prompt", PROMPT);
	return body;
}

const REQUESTS: readonly [string, () => object | FormData][] = [
	["/v1/completions", () => ({ model: "text", prompt: PROMPT })],
	["/v1/completions", () => ({ model: "streamed", prompt: PROMPT, stream: true })],
	["/v1/embeddings", () => ({ model: "embedding", input: PROMPT })],
	["/v1/rerank", () => ({ model: "rerank", query: PROMPT, documents: [PROMPT] })],
	["/v1/images/generations", () => ({ model: "image", prompt: PROMPT })],
	["/v1/audio/transcriptions", form],
];

const headers = {
	cookie: "session=canary-cookie",
	"x-forwarded-for": "203.0.113.9",
	"openai-organization": "org-canary",
	"x-custom": "canary-header",
};
const send = (path: string, body: object, secret: string) => service.post(path, secret, body, { headers });

test.each(REQUESTS)("POST %s sends the server only listed headers and the gateway's own key", async (path, make) => {
	const { secret } = await service.customer();
	await (await send(path, make(), secret)).text();
	const { headers } = upstream.requests.at(-1) as { headers: Headers };
	expect([...headers.keys()].sort()).toEqual([
		"accept",
		"accept-encoding",
		"authorization",
		"connection",
		"content-length",
		"content-type",
		"host",
		"user-agent",
		"x-request-id",
	]);
	expect(headers.get("authorization")).toBe(`Bearer ${KEY}`);
	expect(JSON.stringify([...headers])).not.toMatch(/canary-(cookie|header)|203\.0\.113|sk_service_/);
});

const HOSTILE: readonly [string, () => Response][] = [
	["an error of its own", () => Response.json({ error: { message: `${ANSWER} ${KEY}` } }, { status: 500 })],
	[
		"a refusal that quotes the request",
		() => Response.json({ detail: [{ loc: ["body", "prompt"], msg: PROMPT }] }, { status: 422 }),
	],
	["a refusal of our key", () => Response.json({ error: `bad key ${KEY}` }, { status: 401 })],
	["an error in a 200", () => Response.json({ error: { message: ANSWER } })],
	["HTML", () => new Response(`<html>${ANSWER}</html>`, { headers: { "content-type": "text/html" } })],
	["an empty body", () => new Response("")],
	["JSON that is no object", () => Response.json([ANSWER, 1, null])],
	["a redirect", () => new Response(ANSWER, { status: 302, headers: { location: `${upstream.url}/elsewhere` } })],
	["invalid UTF-8", () => new Response(new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]))],
	[
		"a line without end",
		() => new Response(`data: ${"x".repeat(2 * 1024 * 1024)}`, { headers: { "content-type": "text/event-stream" } }),
	],
	[
		"events that are no objects",
		() => new Response(`data: [1]\r\rdata: null\r\n\r\n`, { headers: { "content-type": "text/event-stream" } }),
	],
	[
		"headers of its own",
		() => Response.json({ error: ANSWER }, { status: 503, headers: { server: ANSWER, "set-cookie": ANSWER } }),
	],
];

test.each(REQUESTS)("POST %s survives hostile answers of the model server and charges nothing", async (path, make) => {
	const { secret, accountId } = await service.customer();
	for (const [what, answer] of HOSTILE) {
		const before = upstream.requests.length;
		upstream.next(answer);
		const response = await send(path, make(), secret);
		const text = `${JSON.stringify([...response.headers])}${await response.text()}`;
		expect([what, response.status >= 400]).toEqual([what, true]);
		expect(text).toContain('"error":{"message"');
		expect(text).not.toMatch(/canary|127\.0\.0\.1|elsewhere/);
		expect([what, upstream.requests.length]).toEqual([what, before + 1]);
	}
	await service.settled();
	const charged = (await service.usage(accountId)).map((row, at) => [HOSTILE[at]?.[0], row.charged_nano_usd]);
	expect(charged).toEqual(HOSTILE.map(([what]) => [what, "0"]));
});

test("the log has no prompt, key or cookie", async () => {
	const { secret } = await service.customer();
	for (const [path, make] of REQUESTS) await (await send(path, make(), secret)).text();
	const log = JSON.stringify(service.logged);
	expect(service.logged.length).toBeGreaterThan(10);
	for (const canary of [KEY, PROMPT, ANSWER]) expect(log).not.toContain(canary);
	expect(log).not.toContain("canary-cookie");
	expect(log).not.toContain(secret);
});
