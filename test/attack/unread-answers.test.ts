/** Long answers that a customer asks for and does not read: they are his to read, and nobody else's memory. */
import { expect, test } from "bun:test";
import { atEnd } from "../support/at-end.ts";
import { openRaw, type RawClient, rawPost } from "../support/raw-http.ts";
import { deployment } from "../support/upstream-endpoints.ts";
import { waitFor } from "../support/wait.ts";
import { withProduct } from "./product.ts";

const MB = 1024 * 1024;
/** More than the buffers of a connection take. */
const ANSWER_BYTES = 16 * MB;

const answer = `{"choices":[{"index":0,"message":{"role":"assistant","content":"${"x".repeat(ANSWER_BYTES)}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":9}}`;
let asked = 0;
function answerTo(): Response {
	asked += 1;
	return new Response(answer, { headers: { "content-type": "application/json" } });
}
const server = Bun.serve({
	port: 0,
	hostname: "127.0.0.1",
	fetch: (request) => (request.method === "POST" ? answerTo() : Response.json({ data: [] })),
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

/** Asks, and reads nothing from the first byte on. */
async function askUnread(secret: string, headers: Record<string, string> = {}): Promise<RawClient> {
	const client = await openRaw(product.url, rawPost("/v1/chat/completions", secret, ASK, headers));
	client.stall();
	return client;
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
	const [first, second] = [await askUnread(idle, AGAIN), await askUnread(idle)];
	await waitFor(() => asked === 2, "both to be answered");
	// Two of them are 32 MB.
	expect(await statusOf(idle)).toEqual([200, undefined]);
	const third = await askUnread(idle);
	await waitFor(async () => (await statusOf(idle))[1] === "rate_limit_exceeded", "what is unread to be counted");
	expect(await statusOf(idle, AGAIN)).toEqual([429, "rate_limit_exceeded"]);
	expect(await statusOf(other)).toEqual([200, undefined]);
	// One is read to its end, and then all who read none leave.
	first.resume();
	await waitFor(async () => (await statusOf(idle))[0] === 200, "room for who has read");
	const fourth = await askUnread(idle);
	await waitFor(async () => (await statusOf(idle))[0] === 429, "the next one to be counted");
	for (const client of [second, third, fourth]) client.leave();
	await waitFor(async () => (await statusOf(idle))[0] === 200, "room for who has left");
	expect(await statusOf(other)).toEqual([200, undefined]);
}, 60_000);
