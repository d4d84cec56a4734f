import { expect, test } from "bun:test";
import { ask, priceOf } from "../../support/chat.ts";
import { eventsOf, openRaw, parseRaw, rawPost } from "../../support/raw-http.ts";
import { withChat } from "../../support/service.ts";
import { reply } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const { upstream, service } = await withChat({ dialect: "vllm", env: { DRAIN_S: "1" } });

const PATH = "/v1/chat/completions";

test("a gateway's stop ends open streams with an error and charges each once", async () => {
	const { accountId, secret } = await service.customer();
	const streamed = rawPost(PATH, secret, ask("one two three", { stream: true }));
	upstream.next(reply().text("a b c").stallAfter(2));
	const stuck = await openRaw(service.url, streamed);
	await stuck.until('" b"');
	upstream.next(reply().text("a b c d e f g h i j").trickle(20));
	const ending = await openRaw(service.url, streamed);
	await ending.until('"content":"a"');
	await service.app.stop();

	const finished = parseRaw(ending.text());
	expect(eventsOf(finished.body).at(-1)).toBe("[DONE]");
	expect(finished.body).not.toContain('"error"');

	// The body's final chunk has arrived, so the stream was ended properly and not cut off.
	expect(stuck.text().endsWith("\r\n0\r\n\r\n")).toBe(true);
	const events = eventsOf(parseRaw(stuck.text()).body);
	expect(events.slice(-3)).toMatchObject([
		{ error: { code: "service_unavailable", type: "server_error" } },
		{
			choices: [{ delta: {}, finish_reason: null }],
			usage: { prompt_tokens: 6, completion_tokens: 2, cost: priceOf(6, 2) / 1e9 },
		},
		"[DONE]",
	]);
	await waitFor(() => upstream.open() === 0, "the upstream to be let go");

	const rows = await service.usage(accountId);
	expect(rows.map((row) => [row.ending, Number(row.charged_nano_usd)])).toEqual([
		["shutdown", priceOf(6, 2)],
		["finished", priceOf(6, 10)],
	]);
	const balance = await service.balance(accountId);
	expect([Number(balance.spent), Number(balance.held)]).toEqual([priceOf(6, 12) + 6_000, 0]);
	expect((await service.reconciled()).filter(({ ok }) => !ok)).toEqual([]);
	const [open] = await service.db.sql`select count(*)::int as open from lease where state = 'open'`;
	expect(open?.open).toBe(0);
});
