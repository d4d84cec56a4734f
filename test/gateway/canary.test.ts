import { expect, test } from "bun:test";
import { ask } from "../support/chat.ts";
import { chatModel, withService } from "../support/service.ts";
import { deployment, wavOf, withEndpoints } from "../support/upstream-endpoints.ts";
import type { Reply } from "../support/upstream-reply.ts";
import { reply, type SeenRequest, withUpstream } from "../support/upstream-server.ts";

/** Secrets planted in keys, prompts and upstream answers appear in no answer and no log, whatever fails. */

const UPSTREAM_KEY = "canary-upstream-key-8f3a";
const PROMPT = "canary-prompt-51c7";
const UPSTREAM_TEXT = "canary-engine-trouble-9d20";
const SERVED_NAME = "canary-served-name-77b1";

const answers: string[] = [];

const upstream = withUpstream("vllm");
const model = (id: string, url: string) =>
	chatModel({ id, url, dialect: "vllm" }).replace(
		"model: served-name",
		`model: ${SERVED_NAME}\n        api_key: ${UPSTREAM_KEY}`,
	);
const endpoints = withEndpoints("vllm");
const at = { url: endpoints.url, dialect: "vllm" as const, apiKey: UPSTREAM_KEY };
const tokens = 'input: "1", output: "2"';
const service = await withService({
	models: [
		model("test-model", upstream.url),
		model("dead-model", "http://127.0.0.1:1/v1"),
		// Each kind of answer has its own model, so that failures of one kind do not open the circuit breaker of another.
		deployment({ id: "text", ...at, rates: tokens, parameters: "max_tokens" }),
		deployment({ id: "streamed", ...at, rates: tokens, parameters: "max_tokens" }),
		deployment({ id: "embedding", kind: "embedding", ...at, rates: 'input: "1"' }),
		deployment({ id: "rerank", kind: "rerank", ...at, rates: 'search: "0.001"' }),
		deployment({ id: "image", kind: "image", ...at, rates: 'image: "0.01"' }),
		deployment({ id: "audio", kind: "transcription", ...at, rates: 'audio_second: "0.001"' }),
	].join("\n"),
	limits:
		"  silence_s: 2\n  first_event_s: 2\n  total_s: 4\n  body_mb: 1\n  breaker_failures_in_row: 1000\n  breaker_failure_share: 1",
});

async function keep(response: Promise<Response>): Promise<void> {
	const { status, headers, body } = await response.then(async (got) => ({
		status: got.status,
		headers: [...got.headers],
		body: await got.text(),
	}));
	answers.push(JSON.stringify({ status, headers, body }));
}

test("a secret planted in a key, prompt or answer appears in no answer, log or table", async () => {
	const { secret } = await service.customer();
	const error = {
		error: {
			message: `${UPSTREAM_TEXT} for ${PROMPT} with ${UPSTREAM_KEY}`,
			type: UPSTREAM_TEXT,
			code: UPSTREAM_TEXT,
			param: UPSTREAM_TEXT,
		},
	};
	const lies = {
		top: {
			model: SERVED_NAME,
			prompt: UPSTREAM_TEXT,
			system_fingerprint: UPSTREAM_TEXT,
			__verbose: { prompt: UPSTREAM_TEXT },
		},
		choice: { stop_reason: UPSTREAM_TEXT, token_ids: [1] },
		delta: { debug: UPSTREAM_TEXT },
	};
	const scripts: (() => Reply)[] = [
		() => reply().text("fine").lie(lies),
		...[400, 401, 403, 404, 422, 429, 500, 503].map(
			(status) => () => reply().errorStatus(status, error, { "x-secret": UPSTREAM_TEXT, "set-cookie": UPSTREAM_TEXT }),
		),
		() => reply().errorStatus(500, UPSTREAM_TEXT),
		() => reply().errorStatus(302, "", { location: `http://127.0.0.1:1/${UPSTREAM_TEXT}` }),
		() => reply().raw(JSON.stringify(error), "application/json"),
		() => reply().raw(UPSTREAM_TEXT, "text/html"),
		() => reply().raw(JSON.stringify({ choices: [], detail: UPSTREAM_TEXT }), "application/json"),
		() => reply().errorEvent(0, error),
		() => reply().text("a b").errorEvent(1, error),
		() => reply().text("a b").dieAfter(1),
		() => reply().text("a b").endAfter(1),
		() => reply().raw(`data: ${UPSTREAM_TEXT}\n\n`),
		() => reply().raw(`event: ${UPSTREAM_TEXT}\nid: ${UPSTREAM_TEXT}\nretry: 5\n: ${UPSTREAM_TEXT}\ndata: [DONE]\n\n`),
		() => reply().text("x").finish(UPSTREAM_TEXT),
		() => reply().reset(),
		() => reply().hang(),
	];
	const prompt = `${PROMPT} please`;
	for (const script of scripts) {
		upstream.always(script);
		const ways = [true, false].map((stream) => ask(prompt, { stream }));
		await Promise.all(ways.map((body) => keep(service.chat(secret, body))));
		// Sends a successful request after each failure, so that the circuit breaker stays closed.
		upstream.always(() => reply().text("fine"));
		await keep(service.chat(secret, ask(prompt)));
	}
	expect(upstream.requests.length).toBeGreaterThanOrEqual(3 * scripts.length);
	await keep(service.chat(secret, ask(prompt, { model: "dead-model" })));
	await keep(service.chat(secret, `{"messages": ${PROMPT}`));
	await keep(service.chat(secret, ask(prompt, { temperature: PROMPT })));
	await keep(service.chat(secret, ask(PROMPT.repeat(100_000))));
	await keep(service.chat(`${secret.slice(0, -1)}!`, ask(prompt)));
	await keep(service.get("/v1/models", secret));
	await keep(service.get("/readyz"));
	upstream.always(() => reply().text("a b").stallAfter(1));
	const client = await service.openChat(secret, ask(prompt, { stream: true }));
	await client.until('"a"');
	client.leave();
	await service.settled();

	const address = `127.0.0.1:${upstream.port}`;
	expect(answers.length).toBeGreaterThan(45);
	const canaries = [UPSTREAM_KEY, PROMPT, UPSTREAM_TEXT, SERVED_NAME, address, secret];
	for (const answer of answers) {
		// An error may quote the client's own `param`, but no other planted text.
		for (const canary of canaries)
			if (answer.includes(canary)) throw new Error(`${canary} is in ${answer.slice(0, 500)}`);
		expect(answer).not.toContain("set-cookie");
	}
	expectNotLogged(...canaries, service.app.secrets.keyPepper);
	const columns = JSON.stringify([
		...(await service.db.sql`select * from usage_event`),
		...(await service.db.sql`select * from reservation`),
		...(await service.db.sql`select * from control_log`),
	]);
	for (const canary of [UPSTREAM_KEY, PROMPT, UPSTREAM_TEXT, address, secret])
		expect(columns.includes(canary)).toBe(false);
}, 30_000);

function expectNotLogged(...canaries: readonly string[]): void {
	const log = JSON.stringify(service.logged);
	for (const canary of canaries) {
		const at = log.indexOf(canary);
		if (at >= 0) throw new Error(`${canary} is in the log: ${log.slice(Math.max(0, at - 300), at + 100)}`);
	}
}

function form(): FormData {
	const body = new FormData();
	body.append("file", new File([wavOf(1)], "talk.wav"));
	body.append("model", "audio");
	body.append("prompt", PROMPT);
	return body;
}

const ENDPOINTS: readonly [string, () => object | FormData][] = [
	["/v1/completions", () => ({ model: "text", prompt: PROMPT })],
	["/v1/completions", () => ({ model: "streamed", prompt: PROMPT, stream: true })],
	["/v1/embeddings", () => ({ model: "embedding", input: PROMPT })],
	["/v1/rerank", () => ({ model: "rerank", query: PROMPT, documents: [PROMPT] })],
	["/v1/images/generations", () => ({ model: "image", prompt: PROMPT })],
	["/v1/audio/transcriptions", form],
];

const chat = () => ask("hi", { user: "canary-user", metadata: { a: "canary-metadata" } });
const headers = {
	cookie: "session=canary-cookie",
	"x-forwarded-for": "canary-address",
	"user-agent": "canary-agent",
	"openai-organization": "canary-organization",
	"x-custom": "canary-header",
};
const send = (path: string, body: object, secret: string) => service.post(path, secret, body, { headers });

test.each([["/v1/chat/completions", chat] as const, ...ENDPOINTS])(
	"POST %s sends a model server only known fields, listed headers and its API key",
	async (path, make) => {
		const { secret } = await service.customer();
		upstream.always(() => reply().text("ok"));
		await (await send(`${path}?canary=query`, make(), secret)).text();
		const { headers, ...seen } = (make === chat ? upstream : endpoints).requests.at(-1) as SeenRequest;
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
		expect(headers.get("authorization")).toBe(`Bearer ${UPSTREAM_KEY}`);
		expect(headers.get("x-request-id")).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
		const sent = JSON.stringify([seen.path, [...headers], seen.body]);
		expect(sent).not.toMatch(
			/canary-(cookie|agent|organization|header|user|metadata|address)|canary=query|sk_service_/,
		);
	},
);

const KIND = { headers: { "content-type": "text/event-stream" } };
const HOSTILE: readonly [string, number, () => Response][] = [
	["an error", 502, () => Response.json({ error: `${UPSTREAM_TEXT} ${UPSTREAM_KEY}` }, { status: 500 })],
	["a refusal", 400, () => Response.json({ detail: [{ loc: ["body", "prompt"], msg: PROMPT }] }, { status: 422 })],
	["a refusal of our key", 503, () => Response.json({ error: `bad key ${UPSTREAM_KEY}` }, { status: 401 })],
	["an error in a 200", 502, () => Response.json({ error: { message: UPSTREAM_TEXT } })],
	["HTML", 502, () => new Response(`<html>${UPSTREAM_TEXT}</html>`, { headers: { "content-type": "text/html" } })],
	["an empty body", 502, () => new Response("")],
	["JSON that is no object", 502, () => Response.json([UPSTREAM_TEXT, 1, null])],
	["a redirect", 503, () => new Response(UPSTREAM_TEXT, { status: 302, headers: { location: `${endpoints.url}/x` } })],
	["invalid UTF-8", 502, () => new Response(new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]))],
	["a line without end", 502, () => new Response(`data: ${"x".repeat(2 * 1024 * 1024)}`, KIND)],
	["events that are no objects", 502, () => new Response(`data: [1]\r\rdata: null\r\n\r\n`, KIND)],
	["headers of its own", 503, () => new Response("{}", { status: 503, headers: { "set-cookie": UPSTREAM_TEXT } })],
];

test.each(ENDPOINTS)("POST %s survives hostile answers of the model server and charges nothing", async (path, make) => {
	const { secret, accountId } = await service.customer();
	for (const [what, status, answer] of HOSTILE) {
		const before = endpoints.requests.length;
		endpoints.next(answer);
		const response = await send(path, make(), secret);
		const text = `${JSON.stringify([...response.headers])}${await response.text()}`;
		expect([what, response.status]).toEqual([what, status]);
		expect(text).toContain('"error":{"message"');
		expect(text).not.toMatch(/canary|127\.0\.0\.1/);
		expect([what, endpoints.requests.length]).toEqual([what, before + 1]);
	}
	await service.settled();
	const charged = (await service.usage(accountId)).map((row, at) => [HOSTILE[at]?.[0], row.charged_nano_usd]);
	expect(charged).toEqual(HOSTILE.map(([what]) => [what, "0"]));
	expectNotLogged(UPSTREAM_KEY, PROMPT, UPSTREAM_TEXT, "canary-cookie", secret);
});
