import { expect, test } from "bun:test";
import { ask } from "../support/chat.ts";
import { openRaw, rawPost } from "../support/raw-http.ts";
import { chatModel, withService } from "../support/service.ts";
import type { Reply } from "../support/upstream-reply.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";

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
const service = await withService({
	models: `${model("test-model", upstream.url)}\n${model("dead-model", "http://127.0.0.1:1/v1")}`,
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
		await Promise.all(ways.map((body) => keep(service.post("/v1/chat/completions", secret, body))));
		// Sends a successful request after each failure, so that the circuit breaker stays closed.
		upstream.always(() => reply().text("fine"));
		await keep(service.post("/v1/chat/completions", secret, ask(prompt)));
	}
	expect(upstream.requests.length).toBeGreaterThanOrEqual(3 * scripts.length);
	await keep(service.post("/v1/chat/completions", secret, ask(prompt, { model: "dead-model" })));
	await keep(service.post("/v1/chat/completions", secret, `{"messages": ${PROMPT}`));
	await keep(service.post("/v1/chat/completions", secret, ask(prompt, { temperature: PROMPT })));
	await keep(service.post("/v1/chat/completions", secret, ask(PROMPT.repeat(100_000))));
	await keep(service.post("/v1/chat/completions", `${secret.slice(0, -1)}!`, ask(prompt)));
	await keep(service.get("/v1/models", secret));
	await keep(service.get("/readyz"));
	upstream.always(() => reply().text("a b").stallAfter(1));
	const client = await openRaw(service.url, rawPost("/v1/chat/completions", secret, ask(prompt, { stream: true })));
	await client.until('"a"');
	client.leave();
	await service.settled();

	const address = `127.0.0.1:${upstream.port}`;
	const log = JSON.stringify(service.logged);
	expect(answers.length).toBeGreaterThan(45);
	for (const answer of answers) {
		for (const canary of [UPSTREAM_KEY, PROMPT, UPSTREAM_TEXT, SERVED_NAME, address, secret]) {
			// An error may quote the client's own `param`, but no other planted text.
			if (answer.includes(canary)) throw new Error(`${canary} is in ${answer.slice(0, 500)}`);
		}
		expect(answer).not.toContain("set-cookie");
	}
	for (const canary of [
		UPSTREAM_KEY,
		PROMPT,
		UPSTREAM_TEXT,
		SERVED_NAME,
		address,
		secret,
		service.app.secrets.keyPepper,
	]) {
		const at = log.indexOf(canary);
		if (at >= 0) throw new Error(`${canary} is in the log: ${log.slice(Math.max(0, at - 300), at + 100)}`);
	}
	const columns = JSON.stringify([
		...(await service.db.sql`select * from usage_event`),
		...(await service.db.sql`select * from reservation`),
		...(await service.db.sql`select * from control_log`),
	]);
	for (const canary of [UPSTREAM_KEY, PROMPT, UPSTREAM_TEXT, address, secret])
		expect(columns.includes(canary)).toBe(false);
	expect(upstream.requests.every(({ headers }) => headers.get("authorization") === `Bearer ${UPSTREAM_KEY}`)).toBe(
		true,
	);
}, 30_000);

test("the gateway forwards to the model server only fields of its interface", async () => {
	const { secret } = await service.customer();
	upstream.always(() => reply().text("ok"));
	const headers = {
		authorization: `Bearer ${secret}`,
		"content-type": "application/json",
		cookie: "canary-cookie",
		"x-forwarded-for": "canary-address",
		"user-agent": "canary-agent",
		"openai-organization": "canary-organization",
		"x-custom": "canary-header",
	};
	const body = ask("hi", { user: "canary-user", metadata: { a: "canary-metadata" } });
	await (await service.post("/v1/chat/completions?canary=query", secret, body, { headers })).text();
	const seen = upstream.requests.at(-1);
	const sent = JSON.stringify([seen?.path, [...(seen?.headers ?? [])], seen?.body]);
	expect(sent).not.toMatch(/canary-(c|a|o|h|u(?!pstream-key)|m)|canary=query/);
	expect(sent).not.toContain(secret);
	expect(seen?.headers.get("x-request-id")).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
});
