import { expect, test } from "bun:test";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { streamChat } from "../../src/web/chat-stream.ts";
import { localServer } from "../support/at-end.ts";

/** Chunks of the next response. Each read returns one chunk. */
let next: readonly Uint8Array[] = [];
const server = localServer(() => {
	const chunks = next;
	const body = new ReadableStream<Uint8Array>({
		async start(controller) {
			for (const chunk of chunks) {
				controller.enqueue(chunk);
				await new Promise((resolve) => setImmediate(resolve));
			}
			controller.close();
		},
	});
	return new Response(body, { headers: { "content-type": "text/event-stream", "x-request-id": "req_1" } });
});

const bytes = (text: string) => new TextEncoder().encode(text);
const event = (body: object) => `data: ${JSON.stringify(body)}\n\n`;
const says = (content: string) => event({ choices: [{ delta: { content } }] });

async function read(chunks: readonly Uint8Array[]) {
	next = chunks;
	const heard = { answer: "", thought: "" };
	const end = await streamChat(server.url.href, {}, AbortSignal.timeout(20_000), (text, kind) => {
		heard[kind] += text;
	});
	return { ...end, ...heard };
}

test("the playground's reader reads text, reasoning and usage from chunks of any size", async () => {
	const stream = bytes(
		[
			": a comment\r\n\r\n",
			event({ choices: [{ delta: { reasoning_content: "hm" } }] }),
			says("Grüße, 東京 🗼").replaceAll("\n", "\r\n"),
			event({ choices: [{ delta: { content: "!" }, finish_reason: "stop" }] }),
			event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, cost: 0.5 } }),
			"data: [DONE]\n\n",
		].join(""),
	);
	const whole = await read([stream]);
	expect(whole).toEqual({
		requestId: "req_1",
		usage: { promptTokens: 3, completionTokens: 4, costNanoUsd: nanoUsd(500_000_000) },
		toolCalls: [],
		finishReason: "stop",
		error: undefined,
		answer: "Grüße, 東京 🗼!",
		thought: "hm",
	});
	for (const size of [1, 7]) {
		const pieces = Array.from({ length: Math.ceil(stream.length / size) }, (_, at) =>
			stream.subarray(at * size, (at + 1) * size),
		);
		expect(await read(pieces)).toEqual(whole);
	}
});

test("the playground's reader assembles parallel tool calls from their fragments", async () => {
	const piece = (index: number, rest: object) => event({ choices: [{ delta: { tool_calls: [{ index, ...rest }] } }] });
	const end = await read([
		bytes(
			[
				piece(0, { id: "call_a", function: { name: "one", arguments: '{"x"' } }),
				piece(1, { id: "call_b", function: { name: "two", arguments: "" } }),
				piece(0, { function: { arguments: ":1}" } }),
				piece(1, { function: { arguments: "{}" } }),
				event({ choices: [{ delta: {}, finish_reason: "tool_calls" }] }),
			].join(""),
		),
	]);
	expect(end.toolCalls).toEqual([
		{ id: "call_a", name: "one", input: '{"x":1}' },
		{ id: "call_b", name: "two", input: "{}" },
	]);
});

test("the playground's reader keeps the text received before an error", async () => {
	const failed = await read([bytes(says("half") + event({ error: { message: "The model stopped." } }))]);
	expect([failed.answer, failed.error]).toEqual(["half", "The model stopped."]);
	const garbled = await read([bytes(`${says("half")}data: {"choices\n\n`)]);
	expect([garbled.answer, garbled.error]).toEqual(["half", "The response was cut off."]);
});

test("the playground's reader stops at an event of more than 4 million characters", async () => {
	const flood = bytes("x".repeat(1_000_000));
	const end = await read([bytes(`${says("half")}data: `), flood, flood, flood, flood, flood]);
	expect([end.answer, end.error]).toEqual(["half", "The response was cut off."]);
});

test("the playground's reader warns that a request without an answer may be charged", async () => {
	const breaking = Bun.listen({
		port: 0,
		hostname: "127.0.0.1",
		socket: { data: (socket) => void socket.terminate() },
	});
	try {
		const asked = streamChat(`http://127.0.0.1:${breaking.port}`, {}, AbortSignal.timeout(20_000), () => undefined);
		const error = await asked.catch((failure: unknown) => failure);
		expect(error).toMatchObject({ status: 0, code: "unanswered" });
		expect(String(error)).toContain("may have been charged");
	} finally {
		breaking.stop(true);
	}
});
