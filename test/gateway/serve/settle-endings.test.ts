import { describe, expect, test } from "bun:test";
import { untilEnd } from "../../support/at-end.ts";
import { ask, onlyUsage, priceOf } from "../../support/chat.ts";
import { LONG } from "../../support/long-form.ts";
import { eventsOf, openRaw, parseRaw, rawPost } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import type { Reply } from "../../support/upstream-reply.ts";
import { reply, startUpstream, type UpstreamServer } from "../../support/upstream-server.ts";

/** Each way a request can end: one row, the right charge, and the credit exact afterwards. */

const vllm = untilEnd(startUpstream({ dialect: "vllm" }));
const openai = untilEnd(startUpstream({ dialect: "openai" }));
const service = await withService({
	models: `${chatModel({ url: vllm.url, dialect: "vllm" })}\n${chatModel({ id: "openai-model", url: openai.url, dialect: "openai" })}`,
	limits: "  silence_s: 2\n  first_event_s: 2\n  breaker_failures_in_row: 1000\n  breaker_failure_share: 1",
});

const QUESTION = "one two three";
/** Prompt tokens that the upstream counts. */
const PROMPT = 6;
/** Of the models here: nobody generates more than fits. */
const CONTEXT = 8192;

interface Streamed {
	accountId: string;
	events: unknown[];
	body: string;
}

/** Streams one answer to its end over a socket of its own. */
async function stream(answer: Reply, more: Record<string, unknown> = {}, upstream = vllm): Promise<Streamed> {
	upstream.next(answer);
	const { accountId, secret } = await service.customer();
	const client = await openRaw(
		service.url,
		rawPost("/v1/chat/completions", secret, ask(QUESTION, { stream: true, ...more }), { connection: "close" }),
	);
	const { status, headers, body } = parseRaw(await client.ended());
	expect(status).toBe(200);
	expect(headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
	return { accountId, events: eventsOf(body), body };
}

const usageOf = (events: unknown[]) => (events.at(-2) as { usage: Record<string, unknown> }).usage;

describe("finished", () => {
	test("a stream is charged by the upstream's count, and its last record says the same", async () => {
		const { accountId, events } = await stream(
			reply().text("a b c").usage({ prompt: PROMPT, completion: 3, cached: 4 }),
		);
		const row = await onlyUsage(service, accountId);
		const cost = 2 * 1_000 + 4 * 500 + 3 * 2_000;
		expect(row).toMatchObject({
			ending: "finished",
			basis: "exact",
			status: 200,
			prompt_tokens: PROMPT,
			cached_tokens: 4,
			completion_tokens: 3,
			streamed: true,
			endpoint: "chat",
			rate_card_id: "test-model@1",
		});
		expect(Number(row.charged_nano_usd)).toBe(cost);
		expect(usageOf(events)).toEqual({
			prompt_tokens: PROMPT,
			completion_tokens: 3,
			total_tokens: PROMPT + 3,
			prompt_tokens_details: { cached_tokens: 4 },
			completion_tokens_details: { reasoning_tokens: 0 },
			cost: cost / 1e9,
			basis: "exact",
		});
	});

	test("a whole answer is charged by the upstream's count", async () => {
		vllm.next(reply().text("a b c"));
		const { accountId, secret } = await service.customer();
		const answer = (await (await service.post("/v1/chat/completions", secret, ask(QUESTION))).json()) as {
			usage: { cost: number };
			id: string;
		};
		const row = await onlyUsage(service, accountId);
		expect(Number(row.charged_nano_usd)).toBe(priceOf(PROMPT, 3));
		expect(answer.usage.cost).toBe(priceOf(PROMPT, 3) / 1e9);
		expect(answer.id).toBe(`chatcmpl-${String(row.request_id).replaceAll("-", "")}`);
	});

	test("several choices: the prompt counts once, what was generated adds up", async () => {
		const { accountId } = await stream(reply().text("a b"), { n: 3 });
		expect(Number((await onlyUsage(service, accountId)).charged_nano_usd)).toBe(priceOf(PROMPT, 6));
	});

	test("without a count from the upstream an estimate is charged, and marked as one", async () => {
		const { accountId, events } = await stream(
			reply().text("abcd efgh").usage(null),
			{ model: "openai-model" },
			openai,
		);
		const row = await onlyUsage(service, accountId);
		expect(row).toMatchObject({ basis: "estimated", ending: "finished", completion_tokens: 3 });
		expect(usageOf(events).completion_tokens).toBe(3);
	});

	test("an estimate is not below the number of events that carried output, however short they were", async () => {
		const { accountId, events } = await stream(
			reply()
				.text([..."abcdefghijkl"])
				.usage(null),
			{ model: "openai-model" },
			openai,
		);
		const row = await onlyUsage(service, accountId);
		expect(row).toMatchObject({ basis: "estimated", completion_tokens: 12 });
		expect(usageOf(events).completion_tokens).toBe(12);
	});

	test("an estimate by events does not pass the limit either", async () => {
		const { accountId } = await stream(
			reply()
				.text([..."abcdefghijkl"])
				.usage(null),
			{ model: "openai-model", max_tokens: 5 },
			openai,
		);
		expect(await onlyUsage(service, accountId)).toMatchObject({ basis: "estimated", completion_tokens: 5 });
	});

	test("an estimate never passes what was reserved, however long the tokens were", async () => {
		const { accountId } = await stream(
			reply()
				.text([" ".repeat(4_000)])
				.usage(null),
			{ model: "openai-model", max_tokens: 2 },
			openai,
		);
		const row = await onlyUsage(service, accountId);
		expect(row.completion_tokens).toBe(2);
		expect(Number(row.charged_nano_usd)).toBeLessThanOrEqual(Number(row.reserved_nano_usd));
	});

	test("an upstream that counts more than the bound is believed as far as context and credit go, and never blocks the books", async () => {
		const { accountId } = await stream(reply().text("a").usage({ prompt: PROMPT, completion: 2_000_000_000 }), {
			max_tokens: 1,
		});
		const row = await onlyUsage(service, accountId);
		expect(Number(row.charged_nano_usd) + Number(row.written_off_nano_usd)).toBe(priceOf(PROMPT, CONTEXT));
		expect(Number(row.charged_nano_usd)).toBeLessThanOrEqual(100e9);
		const beyond = await stream(
			reply()
				.text("a")
				.usage({ prompt: 2 ** 31, completion: 1 }),
			{ max_tokens: 1 },
		);
		expect((await onlyUsage(service, beyond.accountId)).ending).toBe("finished");
	});
});

describe("an error before the first token costs nothing", () => {
	test("with its status, streamed or not", async () => {
		for (const streamed of [true, false]) {
			vllm.next(reply().errorStatus(500));
			const { accountId, secret } = await service.customer();
			const response = await service.post("/v1/chat/completions", secret, ask(QUESTION, { stream: streamed }));
			expect(response.status).toBe(502);
			await response.text();
			expect(await onlyUsage(service, accountId)).toMatchObject({
				ending: "upstream_failed",
				status: 502,
				charged_nano_usd: "0",
				prompt_tokens: 0,
				first_token_ms: null,
			});
		}
	});

	// Beside the other one that takes the whole silence, and not of its server.
	test.concurrent("silence is 504", async () => {
		openai.next(reply().hang());
		const { accountId, secret } = await service.customer();
		const body = ask(QUESTION, { model: "openai-model", stream: true });
		const response = await service.post("/v1/chat/completions", secret, body);
		expect(response.status).toBe(504);
		await response.text();
		expect(await onlyUsage(service, accountId)).toMatchObject({
			ending: "upstream_silent",
			status: 504,
			charged_nano_usd: "0",
		});
	});
});

describe("an upstream that fails in the middle: what was delivered is charged, and the stream says so", () => {
	const cases: [string, (upstream: UpstreamServer) => Reply, string, string][] = [
		["falls silent", () => reply().text("aaaa bbb ccc ddd").stallAfter(2), "upstream_silent", "upstream_timeout"],
		["dies", () => reply().text("aaaa bbb ccc ddd").dieAfter(2), "upstream_died", "upstream_error"],
		["ends without its end", () => reply().text("aaaa bbb ccc ddd").endAfter(2), "upstream_died", "upstream_error"],
		["sends an error event", () => reply().text("aaaa bbb ccc ddd").errorEvent(2), "upstream_failed", "upstream_error"],
		[
			"sends what is no JSON",
			() =>
				reply().raw(
					'data: {"choices":[{"index":0,"delta":{"content":"aaaa bbb"},"finish_reason":null}],"usage":{"prompt_tokens":6,"completion_tokens":2}}\n\ndata: {oops\n\n',
				),
			"upstream_died",
			"upstream_error",
		],
	];
	// Beside each other, and the one before, where it takes the whole silence: the answers are the same.
	for (const [at, [name, answer, ending, code]] of cases.entries())
		for (const include of LONG ? [true, false] : [at % 2 === 0])
			(ending === "upstream_silent" ? test.concurrent : test)(
				`${name}, ${include ? "usage asked for" : "usage not asked for"}`,
				async () => {
					const { accountId, events } = await stream(
						answer(vllm),
						include ? { stream_options: { include_usage: true } } : {},
					);
					const row = await onlyUsage(service, accountId);
					expect(row).toMatchObject({ ending, basis: "exact", prompt_tokens: PROMPT, completion_tokens: 2 });
					expect(Number(row.charged_nano_usd)).toBe(priceOf(PROMPT, 2));
					expect(events.at(-3)).toMatchObject({ error: { code, type: "server_error", param: null } });
					expect(events.at(-2)).toMatchObject({
						choices: [],
						usage: { completion_tokens: 2, cost: priceOf(PROMPT, 2) / 1e9 },
					});
					expect(events.at(-1)).toBe("[DONE]");
					expect(JSON.stringify(events)).not.toContain("secret");
				},
			);

	test("estimated where the upstream does not count as it goes", async () => {
		const { accountId } = await stream(reply().text("aaaa bbb ccc ddd").dieAfter(2), { model: "openai-model" }, openai);
		const row = await onlyUsage(service, accountId);
		// "aaaa bbb" is 8 bytes, the question 17 with its role.
		expect(row).toMatchObject({ ending: "upstream_died", basis: "estimated", completion_tokens: 2, prompt_tokens: 9 });
		expect(Number(row.charged_nano_usd)).toBe(priceOf(9, 2));
	});
});
