import { describe, expect, test } from "bun:test";
import { ask, onlyUsage, priceOf } from "../../support/chat.ts";
import { chatEvent, streamReply, usageEvent } from "../../support/raw-answer.ts";
import { eventsOf, parseRaw } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import type { Reply } from "../../support/upstream-reply.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";

/** Charges for unusual token counts. The dialect matrix tests cover failures. */

const vllm = withUpstream("vllm");
const [openai, learning, other] = [withUpstream(), withUpstream(), withUpstream()];
const service = await withService({
	models: [
		chatModel({ url: vllm.url, dialect: "vllm" }),
		chatModel({ id: "openai-model", url: openai.url }),
		chatModel({ id: "learning", url: learning.url }),
		chatModel({ id: "another", url: other.url }),
	].join("\n"),
	limits: "  silence_s: 2\n  first_event_s: 2\n  breaker_failures_in_row: 1000\n  breaker_failure_share: 1",
});

const QUESTION = "one two three";
const PROMPT = 6;

/** Reads one streamed answer completely over its own socket. */
async function stream(answer: Reply, more: Record<string, unknown> = {}, upstream = vllm) {
	upstream.next(answer);
	const { accountId, secret } = await service.customer();
	const client = await service.openChat(secret, ask(QUESTION, { stream: true, ...more }), { connection: "close" });
	const { status, headers, body } = parseRaw(await client.ended());
	expect(status).toBe(200);
	expect(headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
	return { accountId, events: eventsOf(body) };
}

const usageOf = (events: unknown[]) => (events.at(-2) as { usage: Record<string, unknown> }).usage;

describe("a finished request with an unusual token count", () => {
	test.each<[string, string[], number, number]>([
		["the larger of bytes / 4 and events", ["abcd", " efgh"], 3, 100],
		["at least one token per event", [..."abcdefghijkl"], 12, 100],
		["at most max_tokens, counted by events", [..."abcdefghijkl"], 5, 5],
		["at most max_tokens, counted by bytes", [" ".repeat(4_000)], 2, 2],
	])("is charged an estimate if its answer has no token count: %s", async (_, words, tokens, max_tokens) => {
		const more = { model: "openai-model", max_tokens };
		for (const usage of [null, { prompt: PROMPT, completion: 0 }]) {
			const { accountId, events } = await stream(reply().text(words).usage(usage), more, openai);
			const row = await onlyUsage(service, accountId);
			expect(row).toMatchObject({ basis: "estimated", ending: "finished", completion_tokens: tokens });
			expect(usageOf(events).completion_tokens).toBe(tokens);
			expect(Number(row.charged_nano_usd)).toBeLessThanOrEqual(Number(row.reserved_nano_usd));
		}
	});
});

test("the output delivered before an event that is not JSON is charged", async () => {
	const event =
		'{"choices":[{"index":0,"delta":{"content":"aaaa bbb"},"finish_reason":null}],"usage":{"prompt_tokens":6,"completion_tokens":2}}';
	const { accountId, events } = await stream(reply().raw(`data: ${event}\n\ndata: {oops\n\n`));
	const row = await onlyUsage(service, accountId);
	expect(row).toMatchObject({ ending: "upstream_died", basis: "exact", prompt_tokens: PROMPT, completion_tokens: 2 });
	expect(Number(row.charged_nano_usd)).toBe(priceOf(PROMPT, 2));
	expect(events.at(-3)).toMatchObject({ error: { code: "upstream_error", type: "server_error", param: null } });
	expect(events.at(-1)).toBe("[DONE]");
});

const words = (count: number) => Array.from({ length: count }, () => chatEvent({ content: "barrage " }));

test("the gateway learns a model's tokens per event from finished streams", async () => {
	const estimate = async (upstream = learning, model = "learning") => {
		const answer = streamReply([...words(6), chatEvent({}, "stop")]);
		const { basis, completion_tokens } = await onlyUsage(
			service,
			(await stream(answer, { model }, upstream)).accountId,
		);
		return { basis, completion_tokens };
	};
	expect(await estimate()).toEqual({ basis: "estimated", completion_tokens: 12 });
	for (let time = 0; time < 3; time++)
		await stream(
			streamReply([...words(40), chatEvent({}, "stop"), usageEvent(3, 41)]),
			{ model: "learning" },
			learning,
		);
	expect(await estimate()).toEqual({ basis: "estimated", completion_tokens: 6 });
	// A model at another server keeps its own estimate.
	expect(await estimate(other, "another")).toEqual({ basis: "estimated", completion_tokens: 12 });
});
