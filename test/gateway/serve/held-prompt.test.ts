import { heapStats } from "bun:jsc";
import { expect, spyOn, test } from "bun:test";
import { Prompt } from "../../../src/upstream/prompt.ts";
import { atEnd, localServer } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { chatModel, withService } from "../../support/service.ts";
import { waitFor } from "../../support/wait.ts";

const REQUESTS = 6;
const PROMPT_BYTES = 1_000_000;
const EVENT = 'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n';

/** A server that keeps requests waiting and answers on demand. */
const waiting: (() => void)[] = [];
const server = localServer(async (request) => {
	if (request.method !== "POST") return Response.json({ data: [] });
	await request.arrayBuffer();
	await new Promise<void>((answer) => waiting.push(answer));
	const body = new ReadableStream({ start: (events) => events.enqueue(EVENT) });
	return new Response(body, { headers: { "content-type": "text/event-stream" } });
});
const service = await withService({
	models: chatModel({ url: `http://127.0.0.1:${server.port}/v1` }).replace(
		/context_length: \d+/,
		"context_length: 2000000",
	),
	limits: "  body_memory_mb: 384",
});

const PROMPTS = {
	text: "a line of text\n".repeat(PROMPT_BYTES / 15),
	parts: [{ type: "text", text: "x".repeat(PROMPT_BYTES) }],
};

/** Counts calls of `letGo`, which frees buffers outside the JavaScript heap and must be called once per prompt. */
const letGo = spyOn(Prompt.prototype, "letGo");
atEnd(() => letGo.mockRestore());

function heldBytes(): number {
	Bun.gc(true);
	return heapStats().heapSize;
}

for (const [name, content] of Object.entries(PROMPTS))
	for (const stream of LONG ? [false, true] : [name === "text"])
		test(`a long prompt of ${name} is freed with its answer (streamed ${stream})`, async () => {
			letGo.mockClear();
			const { secret } = await service.customer();
			const body = JSON.stringify({ model: "test-model", stream, messages: [{ role: "user", content }] });
			const leave = new AbortController();
			const ask = () => service.chat(secret, body, { signal: leave.signal });
			const first = ask().catch(() => {});
			await waitFor(() => waiting.length === 1, "the first one to be sent");
			const before = heldBytes();
			const answers = Array.from({ length: REQUESTS }, () => ask());
			for (const answer of answers) answer.catch(() => {});
			await waitFor(() => waiting.length === 1 + REQUESTS, "all to be sent");
			expect((heldBytes() - before) / REQUESTS).toBeLessThan(PROMPT_BYTES / 4);
			for (const answer of waiting.splice(0)) answer();
			if (stream) {
				const readers = (await Promise.all(answers)).map(({ body }) => body?.getReader());
				await Promise.all(readers.map((reader) => reader?.read()));
			}
			const areLetGo = () => waitFor(() => letGo.mock.calls.length === 1 + REQUESTS, "each to be let go, once");
			// A streamed request frees its prompt when output begins, an unstreamed request when it ends.
			if (stream) await areLetGo();
			leave.abort();
			await areLetGo();
			await first;
			await service.settled();
		});
