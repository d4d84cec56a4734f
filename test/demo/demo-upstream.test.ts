import { expect, test } from "bun:test";
import OpenAI from "openai";
import { cutAtStop, DEMO_MODEL_ID, demoTokens, startDemoUpstream } from "../../src/demo/demo-upstream.ts";
import { untilEnd } from "../support/at-end.ts";

const upstream = untilEnd(startDemoUpstream({ tokenDelayMs: 0 }));
const client = new OpenAI({ apiKey: "none", baseURL: upstream.url, maxRetries: 0 });
const messages = [{ role: "user" as const, content: "What do you know about ünïcödé 🎈?" }];

test("the tokens of a text join to the text, each of at least one byte", () => {
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

test("a text ends before the first of its stop strings", () => {
	expect(cutAtStop("one two three", ["three", "two"])).toBe("one ");
	expect(cutAtStop("one two three", ["", "four"])).toBe("one two three");
});

test("an unstreamed answer reports the token count of its text", async () => {
	const answer = await client.chat.completions.create({ model: DEMO_MODEL_ID, messages });
	const text = answer.choices[0]?.message.content ?? "";
	expect(text).toContain("demo model");
	expect(text).toContain("ünïcödé 🎈");
	expect(answer.choices[0]?.finish_reason).toBe("stop");
	expect(answer.usage?.completion_tokens).toBe(demoTokens(text).length);
	expect(answer.usage?.total_tokens).toBe((answer.usage?.prompt_tokens ?? 0) + demoTokens(text).length);
});

test("a stream has the text of the unstreamed answer, one token per event", async () => {
	const whole = await client.chat.completions.create({ model: DEMO_MODEL_ID, messages });
	const stream = await client.chat.completions.create({ model: DEMO_MODEL_ID, messages, stream: true });
	const pieces: string[] = [];
	let last: OpenAI.ChatCompletionChunk | undefined;
	for await (const event of stream) {
		const piece = event.choices[0]?.delta.content;
		if (piece) pieces.push(piece);
		last = event;
	}
	expect(pieces.join("")).toBe(whole.choices[0]?.message.content ?? "");
	expect(pieces).toHaveLength(whole.usage?.completion_tokens ?? -1);
	expect(last?.choices).toEqual([]);
	expect(last?.usage).toEqual(whole.usage);
});

test("the output limit cuts the answer to as many tokens", async () => {
	const answer = await client.chat.completions.create({ model: DEMO_MODEL_ID, messages, max_tokens: 7 });
	expect(answer.usage?.completion_tokens).toBe(7);
	expect(answer.choices[0]?.finish_reason).toBe("length");
	expect(demoTokens(answer.choices[0]?.message.content ?? "")).toHaveLength(7);
});

test("a stop string ends the answer", async () => {
	const answer = await client.chat.completions.create({ model: DEMO_MODEL_ID, messages, stop: "demo" });
	expect(answer.choices[0]?.message.content).toBe("Hello! This is the ");
	expect(answer.choices[0]?.finish_reason).toBe("stop");
});

test("a request without messages is refused", async () => {
	const response = await fetch(`${upstream.url}/chat/completions`, { method: "POST", body: "{}" });
	expect(response.status).toBe(400);
	expect(await response.json()).toMatchObject({ error: { type: "invalid_request_error" } });
});
