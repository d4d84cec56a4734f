import { expect, test } from "bun:test";
import { untilEnd } from "../support/at-end.ts";
import { ask } from "../support/chat.ts";
import type { RawClient } from "../support/raw-http.ts";
import { openRaw, parseRaw, rawPost } from "../support/raw-http.ts";
import { chatModel } from "../support/service.ts";
import { reply } from "../support/upstream-reply.ts";
import { startUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { withProduct } from "./product.ts";

/**
 * However much one customer asks for, and however little it reads, another's request is served within a moment. Without
 * turns between accounts it waited ten seconds and more, or was refused.
 */
const WAIT_MS_MAX = 4_000;
const FLOOD = 1_000;

const upstream = untilEnd(startUpstream());
const narrow = untilEnd(startUpstream());
const product = await withProduct({
	models: `${chatModel({ url: upstream.url })}\n        max_concurrency: 8\n${chatModel({ id: "narrow", url: narrow.url })}\n        max_concurrency: 2`,
	limits: "  reader_stall_s: 1\n  queue_wait_s: 30",
});
const post = (secret: string, body: unknown) =>
	openRaw(product.url, rawPost("/v1/chat/completions", secret, body, { connection: "close" }));

/** Milliseconds until the whole answer was there. */
async function took(secret: string, body: unknown): Promise<number> {
	const startedMs = performance.now();
	const answer = parseRaw(await (await post(secret, body)).ended(60_000));
	expect(answer.status).toBe(200);
	return performance.now() - startedMs;
}

test("a thousand parallel requests of one customer leave another's in no queue", async () => {
	const flood = await product.secret("100");
	const other = await product.secret("100");
	await took(other, ask());
	await took(flood, ask());
	upstream.always(() => reply().delay(100));
	const clients = await Promise.all(Array.from({ length: FLOOD }, () => post(flood, ask())));
	await waitFor(() => upstream.open() >= 6, "the flood to reach the servers");
	const waits: number[] = [];
	for (let nth = 0; nth < 8; nth += 1) waits.push(await took(other, ask()));
	// The flood was not over when the last of them was served.
	expect(upstream.requests.length).toBeLessThan(FLOOD);
	expect(Math.round(Math.max(...waits))).toBeLessThan(WAIT_MS_MAX);
	for (const client of clients) client.leave();
}, 60_000);

test("readers that never read keep no place from others", async () => {
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
	expect(await took(other, ask("one", { model: "narrow" }))).toBeLessThan(1_000 + WAIT_MS_MAX);
	for (const client of stalled) client.leave();
}, 60_000);
