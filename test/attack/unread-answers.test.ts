/**
 * Many concurrent long answers are read from the server one after the other, so that they do not fill the memory.
 * Answers that a client never reads count only against its account.
 */
import { expect, test } from "bun:test";
import { localServer } from "../support/at-end.ts";
import { postJson } from "../support/chat.ts";
import { LONG } from "../support/long-form.ts";
import { openRaw, type RawClient, rawPost } from "../support/raw-http.ts";
import { deployment } from "../support/upstream-endpoints.ts";
import { waitFor } from "../support/wait.ts";
import { withProduct } from "./product.ts";

const MB = 1024 * 1024;
/** More bytes than all buffers of a connection can hold. */
const ANSWER_BYTES = 16 * MB;
const AT_ONCE = LONG ? 20 : 12;
/**
 * Without the limit, 12 answers took 1,170 MB and 20 took 1,470; with it 610 to 760, on a machine with free memory and
 * late collections.
 */
const MEMORY_BYTES_MAX = 950 * MB;

const answer = Buffer.from(
	`{"choices":[{"index":0,"message":{"role":"assistant","content":"${"x".repeat(ANSWER_BYTES)}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":9}}`,
);
let asked = 0;
function answerTo(): Response {
	asked += 1;
	return new Response(answer, { headers: { "content-type": "application/json" } });
}
const server = localServer(({ method }) => (method === "POST" ? answerTo() : Response.json({ data: [] })));
const product = await withProduct({
	models: deployment({
		id: "chat",
		url: `http://127.0.0.1:${server.port}/v1`,
		dialect: "openai",
		rates: 'input: "1", output: "1"',
	}),
	limits: "  body_memory_mb: 40",
});
const AGAIN = { "idempotency-key": "again" };
const ASK = { model: "chat", messages: [{ role: "user", content: "x" }], max_tokens: 100 };

/** Sends a request and reads no byte of the answer. */
async function askUnread(secret: string, headers: Record<string, string> = {}): Promise<RawClient> {
	const client = await openRaw(product.url, rawPost("/v1/chat/completions", secret, ASK, headers));
	client.stall();
	return client;
}

const send = (secret: string, headers: Record<string, string> = {}) =>
	postJson(`${product.url}/v1/chat/completions`, secret, ASK, { headers });

async function statusOf(secret: string, headers: Record<string, string> = {}): Promise<[number, string | undefined]> {
	const response = await send(secret, headers);
	const { error } = (await response.json()) as { error?: { code: string } };
	return [response.status, error?.code];
}

test("many long answers arrive completely, and the gateway's memory stays bounded", async () => {
	const secret = await product.secret("100");
	const ask = async () => {
		const answer = await send(secret);
		let bytes = 0;
		for await (const piece of answer.body as ReadableStream<Uint8Array>) bytes += piece.length;
		return [answer.status, bytes > ANSWER_BYTES];
	};
	expect(await Promise.all(Array.from({ length: AT_ONCE }, ask))).toEqual(Array(AT_ONCE).fill([200, true]));
	expect(await product.memoryBytes()).toBeLessThan(MEMORY_BYTES_MAX);
}, 60_000);

test("an account with too many unread bytes of answers is refused", async () => {
	const [idle, other] = [await product.secret("1000"), await product.secret("1000")];
	const before = asked;
	const [first, second] = [await askUnread(idle, AGAIN), await askUnread(idle)];
	await waitFor(() => asked === before + 2, "both to be answered");
	// Two unread answers are still below the account's limit of 32 MB, so its next request is served.
	expect(await statusOf(idle)).toEqual([200, undefined]);
	const third = await askUnread(idle);
	await waitFor(async () => (await statusOf(idle))[1] === "rate_limit_exceeded", "what is unread to be counted");
	expect(await statusOf(idle, AGAIN)).toEqual([429, "rate_limit_exceeded"]);
	expect(await statusOf(other)).toEqual([200, undefined]);
	// The client reads one answer completely. Then all clients disconnect.
	first.resume();
	await waitFor(async () => (await statusOf(idle))[0] === 200, "room for who has read");
	const fourth = await askUnread(idle);
	await waitFor(async () => (await statusOf(idle))[0] === 429, "the next one to be counted");
	for (const client of [second, third, fourth]) client.leave();
	await waitFor(async () => (await statusOf(idle))[0] === 200, "room for who has left");
	expect(await statusOf(other)).toEqual([200, undefined]);
}, 60_000);
