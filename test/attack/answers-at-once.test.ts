/** Long answers that one customer asks for at once: they are read one behind the other, or they fill everybody's memory before any is unread. */
import { expect, test } from "bun:test";
import { atEnd } from "../support/at-end.ts";
import { deployment } from "../support/upstream-endpoints.ts";
import { withProduct } from "./product.ts";

const MB = 1024 * 1024;
const ANSWERS = 40;
const ANSWER_BYTES = 8 * MB;
/** Without the bound they took 1,300 to 1,470 MB; with it some 700 where nobody is short of memory, and collects late. */
const MEMORY_BYTES_MAX = 950 * MB;

const message = { role: "assistant", content: "x".repeat(ANSWER_BYTES) };
const whole = Buffer.from(
	JSON.stringify({
		choices: [{ index: 0, message, finish_reason: "stop" }],
		usage: { prompt_tokens: 5, completion_tokens: 9 },
	}),
);
const server = Bun.serve({
	port: 0,
	hostname: "127.0.0.1",
	idleTimeout: 0,
	fetch: (request) => (request.method === "POST" ? new Response(whole) : Response.json({ data: [] })),
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
	limits: "  answer_memory_mb: 64\n  answer_memory_account_mb: 64",
});

test("many long answers at once come whole, in bounded memory", async () => {
	const secret = await product.secret("100");
	const ask = async () => {
		const answer = await fetch(`${product.url}/v1/chat/completions`, {
			method: "POST",
			headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
			body: JSON.stringify({ model: "chat", messages: [{ role: "user", content: "x" }], max_tokens: 100 }),
		});
		let bytes = 0;
		for await (const piece of answer.body as ReadableStream<Uint8Array>) bytes += piece.length;
		return [answer.status, bytes > ANSWER_BYTES];
	};
	expect(await Promise.all(Array.from({ length: ANSWERS }, ask))).toEqual(Array(ANSWERS).fill([200, true]));
	expect(await product.memoryBytes()).toBeLessThan(MEMORY_BYTES_MAX);
}, 60_000);
