import { expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { ask, onlyUsage } from "../../support/chat.ts";
import { LONG } from "../../support/long-form.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";

const vllm = withUpstream("vllm");
const service = await withService({ models: chatModel({ url: vllm.url, dialect: "vllm" }) });

const QUESTION = "one two three";

test("a stream whose client disconnects after [DONE] counts as finished", async () => {
	vllm.next(reply().text("a b"));
	const { accountId, secret } = await service.customer();
	const client = await service.openChat(secret, ask(QUESTION, { stream: true }));
	await client.until("[DONE]");
	client.leave();
	expect(await onlyUsage(service, accountId)).toMatchObject({ ending: "finished", completion_tokens: 2 });
});

test("requests whose clients disconnect at any moment are settled once", async () => {
	const { accountId, secret } = await service.customer();
	vllm.always(() => reply().text("a b c d e f g h").trickle(1));
	const sent = LONG ? 120 : 60;
	await Promise.all(
		Array.from({ length: sent }, async (_, at) => {
			const client = await service.openChat(secret, ask(QUESTION, { stream: at % 3 > 0 }));
			await Bun.sleep((at * 7) % 23);
			client.leave();
		}),
	);
	// When this request is answered, all earlier requests have ended. A client that left during the key look-up has no
	// usage row.
	expect((await (await service.chat(secret, ask(QUESTION))).json()).usage).toBeDefined();
	await service.settled();
	const rows = await service.usage(accountId);
	expect(rows.length).toBeGreaterThan(0);
	expect(rows.length).toBeLessThanOrEqual(sent + 1);
	expect(new Set(rows.map(({ request_id }) => request_id)).size).toBe(rows.length);
	const balance = await service.balance(accountId);
	expect(Number(balance.held)).toBe(0);
	expect(Number(balance.spent)).toBe(rows.reduce((sum, row) => sum + Number(row.charged_nano_usd), 0));
	expect((await service.reconciled()).every(({ ok }) => ok)).toBe(true);
	expect([...(service.app.instanceLease.present()?.slices() ?? [])].every(({ held }) => held === 0)).toBe(true);
});

/** Number of requests that were refused since the start. */
async function refused(): Promise<number> {
	const text = await (await service.get("/metrics")).text();
	return [...text.matchAll(/^tollgate_errors_total\{.*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
}

test.each(["with", "without"])("requests %s a key whose clients left before their turn are dropped", async (how) => {
	const { accountId, secret } = await service.customer();
	const refusedBefore = await refused();
	vllm.always(() => reply().text("a"));
	// After this request the key is in memory, so that requests do not wait for a look-up.
	await (await service.chat(secret, ask(QUESTION))).json();
	const body = JSON.stringify(ask(QUESTION));
	const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${how === "with" ? secret : "wrong"}`;
	const text = `${head}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
	const sockets = await Promise.all(
		Array.from({ length: 600 }, async () => {
			const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
			await once(socket, "connect");
			return socket;
		}),
	);
	// Requests and disconnects arrive in the same turn of the event loop.
	for (const socket of sockets) socket.end(text).destroySoon();
	await (await service.chat(secret, ask(QUESTION))).json();
	await service.settled();
	const handled = how === "with" ? (await service.usage(accountId)).length : (await refused()) - refusedBefore;
	expect(handled).toBeGreaterThan(2);
	expect(handled).toBeLessThan(300);
});
