import { describe, expect, test } from "bun:test";
import { ask, onlyUsage } from "../../support/chat.ts";
import { eventsOf, parseRaw } from "../../support/raw-http.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";

/** The HTTP status is held back until the first event, for a limited time. Comments keep an idle stream open. */

/** Each test has its own server and model, so that the tests can wait in parallel. */
const [failing, slow, stalling] = [withUpstream("vllm"), withUpstream("vllm"), withUpstream("vllm")];
const service = await withService({
	models: Object.entries({ "failing-model": failing, "slow-model": slow, "stalling-model": stalling })
		.map(([id, { url }]) => chatModel({ id, url, dialect: "vllm" }))
		.join("\n"),
	limits: "  status_hold_s: 1\n  keep_alive_s: 1\n  breaker_failures_in_row: 1000\n  breaker_failure_share: 1",
});

describe("a failure of the model server before the first event", () => {
	test.concurrent("follows the status and a comment if the server fails after a long wait", async () => {
		failing.next(reply().delay(1_500).errorStatus(500));
		const { accountId, secret } = await service.customer();
		const client = await service.openChat(secret, ask("hi", { model: "failing-model", stream: true }));
		const early = parseRaw(await client.until("\r\n\r\n"));
		expect(early.status).toBe(200);
		expect(early.headers.get("x-request-id")).toMatch(/^req_/);
		const events = eventsOf(parseRaw(await client.until("[DONE]")).body);
		client.leave();
		expect(events[0]).toBe(":");
		expect(events.filter((event) => event !== ":")).toMatchObject([
			{ error: { code: "upstream_error" } },
			{ choices: [{ delta: {}, finish_reason: null }], usage: { total_tokens: 0, cost: 0 } },
			"[DONE]",
		]);
		expect(await onlyUsage(service, accountId)).toMatchObject({
			ending: "upstream_failed",
			charged_nano_usd: "0",
			status: 502,
		});
	});
});

describe("a stream without new output", () => {
	test.concurrent("sends comments before its first event", async () => {
		slow.next(reply().delay(3_500).text("a b"));
		const { accountId, secret } = await service.customer();
		const body = ask("one two three", { model: "slow-model", stream: true, stream_options: { include_usage: true } });
		const client = await service.openChat(secret, body);
		const raw = parseRaw(await client.until("[DONE]"));
		client.leave();
		// One comment comes with the status, then one for each second of silence.
		const comments = eventsOf(raw.body).filter((event) => event === ":").length;
		expect(comments).toBeGreaterThanOrEqual(2);
		expect(raw.body.startsWith(": \n\n".repeat(comments))).toBe(true);
		expect((await onlyUsage(service, accountId)).completion_tokens).toBe(2);
	});

	test.concurrent("sends comments between its events", async () => {
		stalling.next(reply().text("a b").stallAfter(1));
		const { secret } = await service.customer();
		const body = ask("one two three", { model: "stalling-model", stream: true });
		const client = await service.openChat(secret, body);
		const events = eventsOf(parseRaw(await client.until(": \n\n")).body);
		client.leave();
		expect(events).toMatchObject([{ choices: [{ delta: { content: "a" } }] }, ":"]);
	});
});
