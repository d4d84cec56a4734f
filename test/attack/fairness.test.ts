import { expect, test } from "bun:test";
import { isDeepStrictEqual } from "node:util";
import { ask } from "../support/chat.ts";
import { openRaw, parseRaw, type RawClient, rawPost } from "../support/raw-http.ts";
import { chatModel } from "../support/service.ts";
import { reply } from "../support/upstream-reply.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { withProduct } from "./product.ts";

/**
 * A customer's flood or unread answers do not delay another customer's request. Without turns between accounts, that
 * request waited ten seconds or was refused. The delay is counted in requests of the flood that are served first, which
 * does not depend on the machine.
 */
const AHEAD_MAX = 60;
const FLOOD = 1_000;
/** Maximum number of places, of eight, that one account may occupy. */
const SHARE = 6;
/** Seconds after which a waiting request of the flood is refused. */
const QUEUE_WAIT_S = 30;

const upstream = withUpstream();
const narrow = withUpstream();
const product = await withProduct({
	models: `${chatModel({ url: upstream.url })}\n        max_concurrency: 8\n${chatModel({ id: "narrow", url: narrow.url })}\n        max_concurrency: 2`,
	limits: `  queue_wait_s: ${QUEUE_WAIT_S}`,
});
const post = (secret: string, body: unknown) =>
	openRaw(product.url, rawPost("/v1/chat/completions", secret, body, { connection: "close" }));

/** Counts the requests that reach the server between this request's sending and arrival. Expects a complete answer. */
async function ahead(secret: string, body: unknown, server = upstream): Promise<number> {
	const before = server.requests.length;
	const answer = parseRaw(await (await post(secret, body)).ended(60_000));
	expect(answer.status).toBe(200);
	return (
		server.requests.findIndex((seen, at) => at >= before && isDeepStrictEqual(seen.body.messages, messagesOf(body))) -
		before
	);
}
const messagesOf = (body: unknown) => (body as { messages: unknown }).messages;

async function waiting(): Promise<number> {
	const figures = await (await fetch(`${product.url}/metrics`)).text();
	return Number(/^tollgate_requests_waiting (\d+)/m.exec(figures)?.[1]);
}

test("a thousand requests of one customer do not delay another", async () => {
	const flood = await product.secret("100");
	const other = await product.secret("100");
	await ahead(other, ask());
	await ahead(flood, ask());
	const hold = Promise.withResolvers<void>();
	upstream.decide(({ messages }) =>
		isDeepStrictEqual(messages, messagesOf(ask("flood"))) ? reply().behind(hold.promise).delay(100) : reply(),
	);
	const clients = await Promise.all(Array.from({ length: FLOOD }, () => post(flood, ask("flood"))));
	await waitFor(async () => upstream.open() === SHARE && (await waiting()) === FLOOD - SHARE, "the flood to wait");
	// Although the hanging requests never end, the other customer's requests get a place.
	for (let nth = 0; nth < 8; nth += 1) expect(await ahead(other, ask("other"))).toBe(0);
	hold.resolve();
	const waits: number[] = [];
	for (let nth = 0; nth < 8; nth += 1) waits.push(await ahead(other, ask("other")));
	expect(await waiting()).toBeGreaterThan(0);
	expect(Math.max(...waits)).toBeLessThan(AHEAD_MAX);
	for (const client of clients) client.leave();
}, 60_000);

test("clients that never read their streams leave capacity to another customer", async () => {
	const readers = [await product.secret("100"), await product.secret("100")];
	const other = await product.secret("100");
	const long = reply().text(Array.from({ length: 1_500 }, () => "x".repeat(20_000)));
	narrow.next(long.trickle(0.01), long.trickle(0.01));
	const stalled: RawClient[] = [];
	for (const secret of readers) {
		const client = await post(secret, ask("go on", { model: "narrow", stream: true }));
		client.stall();
		stalled.push(client);
	}
	await narrow.waitForRequest(2);
	const startedMs = performance.now();
	expect(await ahead(other, ask("one", { model: "narrow" }), narrow)).toBe(0);
	expect(performance.now() - startedMs).toBeLessThan((QUEUE_WAIT_S * 1_000) / 2);
	for (const client of stalled) client.leave();
}, 60_000);
