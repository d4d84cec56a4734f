import { describe, expect, test } from "bun:test";
import { untilEnd } from "../../support/at-end.ts";
import { ask, onlyUsage, priceOf } from "../../support/chat.ts";
import { eventsOf, openRaw, parseRaw, rawPost } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import type { Reply } from "../../support/upstream-reply.ts";
import { reply, startUpstream } from "../../support/upstream-server.ts";

/** Charges of unusual counts. The usual endings of every dialect are in `../chat/dialect-matrix*.test.ts`. */

const vllm = untilEnd(startUpstream({ dialect: "vllm" }));
const openai = untilEnd(startUpstream({ dialect: "openai" }));
const service = await withService({
	models: `${chatModel({ url: vllm.url, dialect: "vllm" })}\n${chatModel({ id: "openai-model", url: openai.url, dialect: "openai" })}`,
	limits: "  breaker_failures_in_row: 1000\n  breaker_failure_share: 1",
});

const PROMPT = 6;
/** Context of the models: the largest possible output. */
const CONTEXT = 8192;

/** Streams one answer to its end over a socket of its own. */
async function stream(answer: Reply, more: Record<string, unknown>, upstream = vllm) {
	upstream.next(answer);
	const { accountId, secret } = await service.customer();
	const body = ask("one two three", { stream: true, ...more });
	const client = await openRaw(service.url, rawPost("/v1/chat/completions", secret, body, { connection: "close" }));
	const parsed = parseRaw(await client.ended());
	expect(parsed.status).toBe(200);
	return { events: eventsOf(parsed.body), row: await onlyUsage(service, accountId) };
}

describe("an estimate", () => {
	test.each([
		["of the events", [..."abcdefghijkl"], 5],
		["of the size", [" ".repeat(4_000)], 2],
	])("%s stays within the output limit", async (_, text, limit) => {
		const more = { model: "openai-model", max_tokens: limit };
		const { row } = await stream(reply().text(text).usage(null), more, openai);
		expect(row).toMatchObject({ basis: "estimated", completion_tokens: limit });
		expect(Number(row.charged_nano_usd)).toBeLessThanOrEqual(Number(row.reserved_nano_usd));
	});
});

test("a count beyond the bound is charged up to the context", async () => {
	const beyond = reply().text("a").usage({ prompt: PROMPT, completion: 2_000_000_000 });
	const { row } = await stream(beyond, { max_tokens: 1 });
	expect(Number(row.charged_nano_usd) + Number(row.written_off_nano_usd)).toBe(priceOf(PROMPT, CONTEXT));
	expect(Number(row.charged_nano_usd)).toBeLessThanOrEqual(100e9);
	const tooLarge = reply()
		.text("a")
		.usage({ prompt: 2 ** 31, completion: 1 });
	expect((await stream(tooLarge, { max_tokens: 1 })).row.ending).toBe("finished");
});

test("an event that is no JSON ends the stream with the charge of what was delivered", async () => {
	const delivered =
		'{"choices":[{"index":0,"delta":{"content":"aaaa bbb"},"finish_reason":null}],"usage":{"prompt_tokens":6,"completion_tokens":2}}';
	const { events, row } = await stream(reply().raw(`data: ${delivered}\n\ndata: {oops\n\n`), {});
	expect(row).toMatchObject({ ending: "upstream_died", basis: "exact", prompt_tokens: PROMPT, completion_tokens: 2 });
	expect(Number(row.charged_nano_usd)).toBe(priceOf(PROMPT, 2));
	expect(events.at(-3)).toMatchObject({ error: { code: "upstream_error", type: "server_error", param: null } });
	expect(events.at(-2)).toMatchObject({ choices: [], usage: { completion_tokens: 2, cost: priceOf(PROMPT, 2) / 1e9 } });
	expect(events.at(-1)).toBe("[DONE]");
});
