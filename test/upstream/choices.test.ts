import { describe, expect, test } from "bun:test";
import { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import { ChatReader } from "../../src/upstream/chat/chat-reader.ts";
import { readChatReply, readChatReplyInTurns } from "../../src/upstream/chat/chat-whole.ts";
import { CompletionReader, readCompletion } from "../../src/upstream/completions.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";

const usage = { prompt_tokens: 3, completion_tokens: 2 };
const finish_reason = "stop";

type Json = Record<string, unknown>;
const call = { function: { name: "f", arguments: "{}" } };

describe("a finish reason in an answer", () => {
	const CALLS: Json = { tool_calls: [{ id: "a", ...call }] };
	const LEGACY: Json = { function_call: call.function };
	test.each<[string, Json, string]>([
		["stop", CALLS, "tool_calls"],
		["STOP", CALLS, "tool_calls"],
		["eos_token", CALLS, "tool_calls"],
		["tool_use", CALLS, "tool_calls"],
		["stop", LEGACY, "function_call"],
		["length", CALLS, "length"],
		["tool_calls", { content: "a" }, "stop"],
		["tool_calls", { content: "a", tool_calls: [] }, "stop"],
		["function_call", { content: "a" }, "stop"],
		["MAX_TOKENS", { content: "a" }, "length"],
		["max_output_tokens", { content: "a" }, "length"],
		["Length", { content: "a" }, "length"],
		["SAFETY", { content: "a" }, "content_filter"],
		["content_filtered", { content: "a" }, "content_filter"],
	])("%s in a choice with %j is sent to the client as %s", (reason, said, expected) => {
		const [whole] = readChatReply(
			{ usage, choices: [{ message: said, finish_reason: reason }] },
			DIALECTS.openai,
		).choices;
		expect(whole?.finish_reason).toBe(expected as "stop");
		for (const inOne of [true, false]) {
			const reader = new ChatReader(DIALECTS.openai);
			const accept = (delta: Json, finish: string | null) =>
				reader.accept(JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] }));
			if (!inOne) expect(accept(said, null)?.choices[0]?.finish_reason).toBeNull();
			expect(accept(inOne ? said : {}, reason)?.choices[0]?.finish_reason).toBe(expected as "stop");
		}
	});
});

test.each(["stop", "tool_calls", "length", null])(
	"a client gets one finish reason although the server then sends %p",
	(repeated) => {
		const chat = new ChatReader(DIALECTS.openai);
		const text = new CompletionReader(DIALECTS.openai, { prompts: 1, n: 1 });
		const tools = [{ index: 0, id: "a", function: { name: "f", arguments: "" } }];
		for (const [reader, said] of [
			[chat, { delta: { content: "a", tool_calls: tools } }],
			[text, { text: "a" }],
		] as const) {
			const accept = (choice: Json) =>
				reader.accept(JSON.stringify({ choices: [{ index: 0, ...choice }], usage }))?.choices;
			expect(accept({ ...said, finish_reason: "stop" })?.[0]).toMatchObject({
				finish_reason: reader === chat ? "tool_calls" : "stop",
			});
			for (const empty of [
				{ delta: {}, text: "" },
				{ delta: { content: "" }, text: "" },
			])
				expect(accept({ ...empty, finish_reason: repeated })).toBeUndefined();
			expect(reader.finished()).toBe(true);
		}
	},
);

test("the reader of answers accepts a whole message in a stream's only event", () => {
	const reader = new ChatReader(DIALECTS.openai);
	const message = { role: "assistant", content: "a b", tool_calls: [{ id: "x", ...call }] };
	const event = { choices: [{ index: 0, message, finish_reason: "stop" }], usage };
	const [choice] = reader.accept(JSON.stringify(event))?.choices ?? [];
	expect(choice).toMatchObject({ delta: { content: "a b", tool_calls: [{ id: "x" }] }, finish_reason: "tool_calls" });
	// Some servers send an empty delta next to the whole message.
	const first = new ChatReader(DIALECTS.openai);
	const empty = { role: null, content: "", tool_calls: null };
	const both = { choices: [{ index: 0, delta: empty, message, finish_reason: "stop" }], usage };
	expect(first.accept(JSON.stringify(both))?.choices).toEqual([choice as never]);
	// After the first delta, a server's `message` may repeat the text so far, so it is ignored.
	const late = new ChatReader(DIALECTS.openai);
	late.accept(JSON.stringify({ choices: [{ index: 0, delta: { content: "a b" } }] }));
	expect(late.accept(JSON.stringify(event))?.choices[0]?.delta).toEqual({});
});

test.each([{ code: 0, message: "Success", sid: "x" }, { error: null }, { error: "" }, { error: false }])(
	"the reader of answers accepts an answer with the field %j",
	(more) => {
		const whole = { ...more, usage, choices: [{ message: { content: "a" }, finish_reason }] };
		expect(readChatReply(whole, DIALECTS.openai).choices[0]?.message.content).toBe("a");
		const event = JSON.stringify({ ...more, choices: [{ index: 0, delta: { content: "a" } }] });
		expect(new ChatReader(DIALECTS.openai).accept(event)?.choices[0]?.delta.content).toBe("a");
		const completion = { ...more, usage, choices: [{ text: "a", finish_reason }] };
		expect(readCompletion(completion, DIALECTS.openai, { prompts: 1, n: 1 }).choices[0]?.text).toBe("a");
	},
);

test("the reader of answers numbers choices without an index by their position", () => {
	const contents = ["a", "b", "c"];
	const chat = { usage, choices: contents.map((content) => ({ message: { content }, finish_reason })) };
	expect(readChatReply(chat, DIALECTS.openai).choices.map(({ index }) => index)).toEqual([0, 1, 2]);
	const completion = { usage, choices: contents.map((text) => ({ text, finish_reason })) };
	const { choices } = readCompletion(completion, DIALECTS.openai, { prompts: 1, n: 3 });
	expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
});

test.each(["", null, undefined, " ", {}])(
	"the reader of answers gives a tool call with arguments %p an empty object",
	(args) => {
		const call = { name: "f", arguments: args };
		const message = { content: null, tool_calls: [{ id: "a", function: call }], function_call: call };
		const [choice] = readChatReply({ usage, choices: [{ message, finish_reason }] }, DIALECTS.openai).choices;
		const read = { name: "f", arguments: "{}" };
		expect(choice?.message).toMatchObject({ tool_calls: [{ id: "a", function: read }], function_call: read });
	},
);

test("the reader of answers keeps reasoning text if an empty reasoning field follows", () => {
	for (const reasoning_content of ["", null]) {
		const said = { content: "a", reasoning_content, reasoning: "b" };
		const [choice] = readChatReply({ usage, choices: [{ message: said, finish_reason }] }, DIALECTS.openai).choices;
		expect(choice?.message.reasoning_content).toBe("b");
		const event = JSON.stringify({ choices: [{ index: 0, delta: said }] });
		expect(new ChatReader(DIALECTS.openai).accept(event)?.choices[0]?.delta.reasoning_content).toBe("b");
	}
});

test("the reader of answers keeps the position of a token whose logprob is null", async () => {
	const tokens = [-0.5, null, undefined].map((logprob, at) => ({ token: `t${at}`, logprob }));
	const content = tokens.map((token) => ({ ...token, top_logprobs: tokens }));
	const body = { usage, choices: [{ message: { content: "a" }, logprobs: { content }, finish_reason }] };
	for (const { choices } of [readChatReply(body, DIALECTS.openai), await readChatReplyInTurns(body, DIALECTS.openai)]) {
		const logprobs = choices[0]?.logprobs as { content: { logprob: number; top_logprobs: unknown[] }[] };
		expect(logprobs.content.map(({ logprob, top_logprobs }) => [logprob, top_logprobs.length])).toEqual([
			[-0.5, 3],
			[-9_999, 3],
			[-9_999, 3],
		]);
	}
	const completion = { usage, choices: [{ text: "a", logprobs: { content }, finish_reason }] };
	const { choices } = readCompletion(completion, DIALECTS.openai, { prompts: 1, n: 1 });
	expect(choices[0]?.logprobs).toMatchObject({ tokens: ["t0", "t1", "t2"], token_logprobs: [-0.5, null, null] });
});

test("the reader of answers fails on a completion text of an unknown type", () => {
	const shape = { prompts: 1, n: 1 };
	for (const text of [5, true, ["a"], { text: "a" }]) {
		const event = { choices: [{ index: 0, text, finish_reason }], usage };
		const reader = new CompletionReader(DIALECTS.openai, shape);
		expect(() => reader.accept(JSON.stringify(event))).toThrow(UpstreamFailure);
		expect(() => readCompletion(event, DIALECTS.openai, shape)).toThrow(UpstreamFailure);
	}
	const reader = new CompletionReader(DIALECTS.openai, shape);
	for (const text of [null, undefined, ""])
		expect(reader.accept(JSON.stringify({ choices: [{ index: 0, text }] }))).toBeUndefined();
});
