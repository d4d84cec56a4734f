import { afterEach, describe, expect, test } from "bun:test";
import { ask } from "../support/chat.ts";
import { withService } from "../support/service.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";

/** Routes, repeated requests and concurrent requests never give a free answer or another customer's answer. */

const [first, second] = [withUpstream(), withUpstream()];
const model = (id: string, url: string, rate: string) => `
  - id: ${id}
    kind: chat
    context_length: 8192
    max_output_tokens: 64
    parameters: [max_tokens, tools, n]
    rates: { input: "${rate}", output: "${rate}" }
    upstreams: [{ url: "${url}", model: served-name, dialect: openai }]`;
const service = await withService({
	models: `${model("dear", first.url, "9000")}
${model("fair", second.url, "2000")}
routes:
  - { id: auto, models: [dear, fair] }`,
	limits:
		"  breaker_failures_in_row: 1000\n  breaker_failure_share: 1\n  account_share: 1\n  queue_length: 500\n  status_hold_s: 5",
});
afterEach(() => {
	for (const upstream of [first, second]) upstream.always(() => reply());
});

const send = (
	secret: string,
	more: Record<string, unknown> = {},
	headers: Record<string, string> = {},
	{ path = "/v1/chat/completions", ...init }: { path?: string; signal?: AbortSignal } = {},
) =>
	service.post(path, secret, ask("one two three", { model: "auto", max_tokens: 16, ...more }), {
		headers: { "content-type": "application/json", authorization: `Bearer ${secret}`, ...headers },
		...init,
	});
const spent = async (accountId: string) => {
	await service.settled();
	return (await service.usage(accountId)).reduce((sum, row) => sum + Number(row.charged_nano_usd), 0);
};

describe("a request to a route of two models", () => {
	test("is sent to the second model in that model's message format if the first fails", async () => {
		const { secret } = await service.customer();
		const body = {
			messages: [
				{ role: "system", content: [{ type: "text", text: 'with "quotes" \\ and more' }] },
				{
					role: "user",
					content: [
						{ type: "text", text: "a" },
						{ type: "text", text: "b", cache_control: { type: "ephemeral" } },
					],
				},
			],
			tools: [{ function: { name: "f", parameters: { type: "object", properties: {} } } }],
			service_tier: "x",
		};
		const alone = await send(secret, { ...body, model: "fair" });
		expect([alone.status, await alone.text()]).toEqual([200, expect.any(String)]);
		const direct = second.requests.at(-1)?.body;
		first.always(() => reply().errorStatus(500));
		const routed = await send(secret, body);
		expect([routed.status, routed.headers.get("x-served-model")]).toEqual([200, "fair"]);
		expect(second.requests.at(-1)?.body).toEqual(direct);
	});

	test("never charges an account or a key more than its credit or cap", async () => {
		const credit = 9_000_000_000;
		const { secret, accountId } = await service.customer({ exactCredit: credit });
		let nth = 0;
		first.always(() => (nth++ % 2 === 0 ? reply().errorStatus(500) : reply()));
		const answers = await Promise.all(Array.from({ length: 80 }, (_, at) => send(secret, { stream: at % 2 === 0 })));
		for (const answer of answers) await answer.text();
		expect(new Set(answers.map(({ status }) => status)).has(200)).toBeTrue();
		expect(await spent(accountId)).toBeLessThanOrEqual(credit);
		const { accountId: other } = await service.customer();
		const capped = await service.key(other, { capNanoUsd: credit as never });
		await Promise.all(Array.from({ length: 80 }, async () => (await send(capped.secret)).text()));
		expect(await spent(other)).toBeLessThanOrEqual(credit);
		for (const { name, ok } of await service.reconciled()) expect([name, ok]).toEqual([name, true]);
	}, 30_000);

	test("stays subject to the key's rate limit and its allowed models", async () => {
		const { accountId } = await service.customer();
		const limited = await service.key(accountId, { requestsPerMinute: 5, models: ["fair"] });
		const before = first.requests.length;
		const answers = await Promise.all(Array.from({ length: 60 }, () => send(limited.secret)));
		const served = answers.filter(({ status }) => status === 200);
		expect(served.length).toBeGreaterThan(0);
		expect(served.length).toBeLessThanOrEqual(5);
		for (const answer of served) expect(answer.headers.get("x-served-model")).toBe("fair");
		expect(first.requests.length).toBe(before);
		const alone = await service.key(accountId, { concurrencyMax: 2, models: ["fair"] });
		const gate = Promise.withResolvers<void>();
		second.always(() => reply().behind(gate.promise));
		const asked = second.requests.length;
		let refused = 0;
		const run = async () => {
			if ((await send(alone.secret)).status === 429) refused += 1;
			if (refused === 28) gate.resolve();
		};
		await Promise.all(Array.from({ length: 30 }, run));
		expect([refused, second.requests.length - asked]).toEqual([28, 2]);
	}, 30_000);

	test("skips a model that costs more than the account's credit", async () => {
		const { accountId } = await service.customer({ exactCredit: 2_500_000_000 });
		const limited = await service.key(accountId, { requestsPerMinute: 3 });
		const answers = await Promise.all(Array.from({ length: 8 }, () => send(limited.secret)));
		const outcomes = answers.map(({ status, headers }) => `${status} ${headers.get("x-served-model")}`);
		expect(outcomes.toSorted()).toEqual([
			...Array.from({ length: 3 }, () => "200 fair"),
			...Array.from({ length: 5 }, () => "429 null"),
		]);
	});
});

describe("a request with a repeated Idempotency-Key", () => {
	test("is charged once although sixty copies arrive concurrently", async () => {
		const { secret, accountId } = await service.customer();
		const before = second.requests.length;
		first.always(() => reply().errorStatus(500));
		const headers = { "idempotency-key": "sixty" };
		const answers = await Promise.all(Array.from({ length: 60 }, () => send(secret, {}, headers)));
		const texts = new Set<string>();
		for (const answer of answers) {
			expect([200, 409]).toContain(answer.status);
			const text = await answer.text();
			if (answer.status === 200) texts.add(text);
		}
		expect([texts.size, second.requests.length - before]).toEqual([1, 1]);
		await service.settled();
		const charged = (await service.usage(accountId)).filter((row) => Number(row.charged_nano_usd) > 0);
		expect(charged.length).toBe(1);
	}, 30_000);

	test("runs again with another API key, and gets 422 with another body or endpoint", async () => {
		const [one, other] = [await service.customer(), await service.customer()];
		const sibling = await service.key(one.accountId);
		const headers = { "idempotency-key": "mine" };
		expect((await send(one.secret, {}, headers)).status).toBe(200);
		for (const secret of [sibling.secret, other.secret]) {
			const answer = await send(secret, {}, headers);
			expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([200, null]);
		}
		expect((await send(one.secret, { max_tokens: 15 }, headers)).status).toBe(422);
		expect((await send(one.secret, {}, headers, { path: "/v1/completions" })).status).toBe(422);
	});

	test("gets an error if the first answer was too large to store", async () => {
		const { secret, accountId } = await service.customer();
		const text = "x".repeat(6 * 1024 * 1024);
		first.always(() =>
			reply().raw(
				JSON.stringify({
					choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
					usage: { prompt_tokens: 5, completion_tokens: 9 },
				}),
				"application/json",
			),
		);
		const headers = { "idempotency-key": "large" };
		const before = first.requests.length;
		const answer = await send(secret, { model: "dear" }, headers);
		expect(
			((await answer.json()) as { choices: { message: { content: string } }[] }).choices[0]?.message.content === text,
		).toBeTrue();
		const again = await send(secret, { model: "dear" }, headers);
		expect([again.status, (await again.text()).includes("USD")]).toEqual([409, true]);
		// A client that disconnects in the middle of an answer is charged once.
		const leaving = new AbortController();
		const leftKey = { "idempotency-key": "left" };
		const left = await send(secret, { model: "dear" }, leftKey, { signal: leaving.signal });
		await left.body?.getReader().read();
		leaving.abort();
		expect((await send(secret, { model: "dear" }, leftKey)).status).toBe(409);
		expect(first.requests.length - before).toBe(2);
		await service.settled();
		expect((await service.usage(accountId)).length).toBe(2);
	}, 30_000);
});
