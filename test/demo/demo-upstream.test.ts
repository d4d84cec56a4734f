import { expect, test } from "bun:test";
import OpenAI from "openai";
import { cutAtStop, DEMO_MODEL_ID, demoTokens, startDemoUpstream } from "../../src/demo/demo-upstream.ts";
import { untilEnd } from "../support/at-end.ts";

const upstream = untilEnd(startDemoUpstream({ tokenDelayMs: 0 }));
const client = new OpenAI({ apiKey: "none", baseURL: upstream.url, maxRetries: 0 });
const messages = [{ role: "user" as const, content: "What do you know about ünïcödé 🎈?" }];

test("the demo model splits a text into tokens that join to the same text", () => {
	for (const text of [
		"",
		"Hello, world!\n\n  two  spaces",
		"日本語のテキスト。",
		"🎈👩‍👩‍👧 e\u0301",
		"a".repeat(100),
	]) {
		const tokens = demoTokens(text);
		expect(tokens.join("")).toBe(text);
		expect(tokens.every((token) => token.length > 0)).toBe(true);
	}
});

test("the demo model's text ends before the first of the request's stop strings", () => {
	expect(cutAtStop("one two three", ["three", "two"])).toBe("one ");
	expect(cutAtStop("one two three", ["", "four"])).toBe("one two three");
});

test("a stream of the demo model has the whole text and its usage at the end", async () => {
	const whole = await client.chat.completions.create({ model: DEMO_MODEL_ID, messages });
	const text = whole.choices[0]?.message.content ?? "";
	expect(text).toMatch(/demo model.*ünïcödé 🎈/s);
	expect(whole.choices[0]?.finish_reason).toBe("stop");
	const completion_tokens = demoTokens(text).length;
	const prompt_tokens = whole.usage?.prompt_tokens ?? 0;
	expect(whole.usage).toMatchObject({ completion_tokens, total_tokens: prompt_tokens + completion_tokens });
	const stream = await client.chat.completions.create({ model: DEMO_MODEL_ID, messages, stream: true });
	const pieces: string[] = [];
	let last: OpenAI.ChatCompletionChunk | undefined;
	for await (const event of stream) {
		const piece = event.choices[0]?.delta.content;
		if (piece) pieces.push(piece);
		last = event;
	}
	expect(pieces.join("")).toBe(text);
	expect(pieces).toHaveLength(completion_tokens);
	expect(last?.choices).toEqual([]);
	expect(last?.usage).toEqual(whole.usage);
});

test("the output limit and a stop string end the demo model's answer", async () => {
	const answerOf = async (more: { max_tokens?: number; stop?: string }) => {
		const { choices, usage } = await client.chat.completions.create({ model: DEMO_MODEL_ID, messages, ...more });
		return { text: choices[0]?.message.content ?? "", reason: choices[0]?.finish_reason, usage };
	};
	const limited = await answerOf({ max_tokens: 7 });
	expect(limited).toMatchObject({ reason: "length", usage: { completion_tokens: 7 } });
	expect(demoTokens(limited.text)).toHaveLength(7);
	expect(await answerOf({ stop: "demo" })).toMatchObject({ text: "Hello! This is the ", reason: "stop" });
});

test("the demo model refuses a request without messages", async () => {
	const response = await fetch(`${upstream.url}/chat/completions`, { method: "POST", body: "{}" });
	expect(response.status).toBe(400);
	expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error" } });
});
