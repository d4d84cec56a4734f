import { expect, test } from "bun:test";
import { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import { ChatReader } from "../../src/upstream/chat/chat-reader.ts";
import { readChatReply, readChatReplyInTurns } from "../../src/upstream/chat/chat-whole.ts";
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

test.each(["", null, undefined, " ", {}])("gives a call without arguments (%p) an empty object", (args) => {
	const call = { name: "f", arguments: args };
	const message = { content: null, tool_calls: [{ id: "a", function: call }], function_call: call };
	const [choice] = readChatReply({ usage, choices: [{ message, finish_reason }] }, DIALECTS.openai).choices;
	const read = { name: "f", arguments: "{}" };
	expect(choice?.message).toMatchObject({ tool_calls: [{ id: "a", function: read }], function_call: read });
});

test("keeps filled reasoning next to an empty field", () => {
	for (const reasoning_content of ["", null]) {
		const said = { content: "a", reasoning_content, reasoning: "b" };
		const [choice] = readChatReply({ usage, choices: [{ message: said, finish_reason }] }, DIALECTS.openai).choices;
		expect(choice?.message.reasoning_content).toBe("b");
		const event = JSON.stringify({ choices: [{ index: 0, delta: said }] });
		expect(new ChatReader(DIALECTS.openai).accept(event)?.choices[0]?.delta.reasoning_content).toBe("b");
	}
});

test("keeps the place of a token whose logprob is null", async () => {
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
