/** Long answers that a customer asks for and does not read: they are his to read, and nobody else's memory. */
import { expect, test } from "bun:test";
import { atEnd } from "../support/at-end.ts";
import { openRaw, parseRaw, type RawClient, rawPost } from "../support/raw-http.ts";
import { deployment } from "../support/upstream-endpoints.ts";
import { waitFor } from "../support/wait.ts";
import { withProduct } from "./product.ts";

const MB = 1024 * 1024;
/** More than the buffers of a connection take. */
const ANSWER_BYTES = 16 * MB;
const TRIES = 8;

const answer = `{"choices":[{"index":0,"message":{"role":"assistant","content":"${"x".repeat(ANSWER_BYTES)}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":9}}`;
const server = Bun.serve({
	port: 0,
	hostname: "127.0.0.1",
	fetch: (request) =>
		request.method === "POST"
			? new Response(answer, { headers: { "content-type": "application/json" } })
			: Response.json({ data: [] }),
});
atEnd(() => server.stop(true));
const product = await withProduct({
	models: deployment({
		id: "chat",
		kind: "chat",
		url: `http://127.0.0.1:${server.port}/v1`,
		dialect: "openai",
		rates: 'input: "1", output: "1"',
	}),
	limits: "  answer_memory_account_mb: 40\n  answer_memory_mb: 100",
});
const AGAIN = { "idempotency-key": "again" };
const ASK = { model: "chat", messages: [{ role: "user", content: "x" }], max_tokens: 100 };

/** Whoever asks and reads nothing; true once the answer begins with a status of success. */
async function askUnread(secret: string, headers: Record<string, string> = {}): Promise<[RawClient, boolean]> {
	const client = await openRaw(product.url, rawPost("/v1/chat/completions", secret, ASK, headers));
	const head = await client.until("\r\n\r\n");
	client.stall();
	return [client, head.startsWith("HTTP/1.1 200")];
}

async function statusOf(secret: string, headers: Record<string, string> = {}): Promise<[number, string | undefined]> {
	const response = await fetch(`${product.url}/v1/chat/completions`, {
		method: "POST",
		headers: { authorization: `Bearer ${secret}`, "content-type": "application/json", ...headers },
		body: JSON.stringify(ASK),
	});
	const { error } = (await response.json()) as { error?: { code: string } };
	return [response.status, error?.code];
}

test("beyond his share of the memory the one who does not read is refused until he has read or left; others are served", async () => {
	const [idle, other] = [await product.secret("1000"), await product.secret("1000")];
	const clients: RawClient[] = [];
	let served = 0;
	for (let nth = 0; nth < TRIES; nth++) {
		const [client, isServed] = await askUnread(idle, nth === 0 ? AGAIN : {});
		clients.push(client);
		if (isServed) served += 1;
		else expect(parseRaw(await client.text()).status).toBe(429);
	}
	// Three of them are 48 MB.
	expect(served).toBe(3);
	expect(await statusOf(idle)).toEqual([429, "rate_limit_exceeded"]);
	expect(await statusOf(idle, AGAIN)).toEqual([429, "rate_limit_exceeded"]);
	expect(await statusOf(other)).toEqual([200, undefined]);
	// One is read to its end, and one reader leaves.
	clients[0]?.resume();
	await waitFor(async () => (await statusOf(idle))[0] === 200, "room for who has read");
	for (const client of clients) client.leave();
	await waitFor(async () => (await statusOf(idle))[0] === 200, "room for who has left");
	expect(await statusOf(other)).toEqual([200, undefined]);
}, 60_000);
