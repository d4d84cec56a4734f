import { expect, test } from "bun:test";
import { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import { readChatReply } from "../../src/upstream/chat/chat-whole.ts";
import { CompletionReader, readCompletion } from "../../src/upstream/completions.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";

const usage = { prompt_tokens: 3, completion_tokens: 2 };
const finish_reason = "stop";

test("numbers choices without an index by their place", () => {
	const contents = ["a", "b", "c"];
	const chat = { usage, choices: contents.map((content) => ({ message: { content }, finish_reason })) };
	expect(readChatReply(chat, DIALECTS.openai).choices.map(({ index }) => index)).toEqual([0, 1, 2]);
	const completion = { usage, choices: contents.map((text) => ({ text, finish_reason })) };
	const { choices } = readCompletion(completion, DIALECTS.openai, { prompts: 1, n: 3 });
	expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
});

test("fails on a completion text of an unknown type", () => {
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
