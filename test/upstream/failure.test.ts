import { describe, expect, test } from "bun:test";
import type { DialectName } from "../../src/catalog/model.ts";
import { isErrorBody, readRetryAfter } from "../../src/upstream/call/failure.ts";
import { ChatReader } from "../../src/upstream/chat/chat-reader.ts";
import { readChatReply } from "../../src/upstream/chat/chat-whole.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import { parseJson } from "../../src/upstream/wire-value.ts";

const of = (dialect: DialectName, status: number, body: unknown) =>
	DIALECTS[dialect].failureOfStatus(status, typeof body === "string" ? body : JSON.stringify(body));

describe("an error status of a server", () => {
	const flat = (message: string) => ({ object: "error", message, code: 400 });
	test.each<[DialectName, number, object]>([
		["vllm", 400, { error: { message: "Input length (9000) exceeds model's maximum context length (8192)." } }],
		["vllm", 400, flat("This model's maximum context length is 8192 tokens. However, you requested 9000")],
		["sglang", 400, flat("The input (9000 tokens) is longer than the model's context length (8192 tokens).")],
		["llama.cpp", 400, { error: { message: "the request exceeds it", type: "exceed_context_size_error" } }],
		["tgi", 422, { error: "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000" }],
		["openai", 400, { error: { message: "too much", code: "context_length_exceeded" } }],
		["openai", 403, { error: { message: "exceeds the maximum context length" } }],
	])("%s's status %d for a prompt that is too long becomes `context_length`", (dialect, status, body) => {
		expect(of(dialect, status, body)).toMatchObject({ kind: "context_length", status });
	});

	test.each([
		["misconfigured", [401, 402, 403, 404, 302]],
		["busy", [429, 503, 529]],
		["rejected", [400, 413, 422]],
		["failed", [408, 424, 499, 500, 502]],
		["unreadable", [204]],
	] as const)("becomes `%s` in every dialect for %j", (kind, statuses) => {
		for (const dialect of Object.values(DIALECTS))
			for (const status of statuses) expect(dialect.failureOfStatus(status, "<html>").kind).toBe(kind);
	});

	test.each([
		["6.2", undefined, 7],
		["0", undefined, 1],
		["-5", undefined, 1],
		["99999", undefined, 60],
		["soon", undefined, undefined],
		["", undefined, undefined],
		[undefined, undefined, undefined],
		["Sun, 29 Nov 2026 08:00:30 GMT", "Sun, 29 Nov 2026 08:00:00 GMT", 30],
		["Sun, 29 Nov 2026 07:00:00 GMT", "Sun, 29 Nov 2026 08:00:00 GMT", 1],
		["Sun, 29 Nov 2026 08:00:30 GMT", undefined, undefined],
	])("with retry-after %p and date %p causes a wait of %p s", (said, date, seconds) => {
		const headers = new Headers({ ...(said === undefined ? {} : { "retry-after": said }), ...(date && { date }) });
		expect(readRetryAfter(headers)).toBe(seconds as number);
	});

	test("names the rejected field only if clients can send it", () => {
		for (const [param, named] of [
			["messages[0].content", "messages[0].content"],
			["messages.2.tool_calls.0.function.arguments", "messages[2].tool_calls[0].function.arguments"],
			["tools[0].type", "tools[0].type"],
			// A path ends before the first name that is internal to the server.
			["tools[0].ToolParamSchema.internal", "tools[0]"],
			["messages[0].content[/srv/models]", "messages[0].content"],
			["tools[99999999]", "tools"],
		])
			expect(of("openai", 400, { error: { message: "x", param } }).param).toBe(named as string);
		const loc = ["body", "messages", 1, "ChatCompletionUserMessageParam", "content", 0];
		expect(of("vllm", 422, { detail: [{ loc, msg: "x" }] }).param).toBe("messages[1]");
		expect(of("openai", 400, { error: { message: "x", param: "/srv/models/secret" } }).param).toBeNull();
		expect(of("vllm", 422, { detail: [{ loc: ["body", "temperature"], msg: "x" }] }).param).toBe("temperature");
		expect(of("vllm", 422, { detail: [{ loc: ["body", "internal_field"], msg: "x" }] }).param).toBeNull();
	});

	test("puts the server's text, shortened, only into the private detail", () => {
		const failure = of("openai", 500, `sk-upstream-secret ${"x".repeat(2000)}`);
		expect(failure.private).toContain("sk-upstream-secret");
		expect(failure.private.length).toBeLessThanOrEqual(500);
		expect(failure.message).toBe("upstream failed");
	});

	test("501 of llama.cpp counts as a rejection of the request", () => {
		expect(of("llama.cpp", 501, { error: { type: "not_supported_error" } }).kind).toBe("rejected");
	});

	test.each([
		["image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "rejected"],
		["audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "rejected"],
		[
			"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 3",
			"rejected",
		],
		['Failed to parse tools: Unsupported tool type: {"type":"custom"}; tools = []', "rejected"],
		["Failed to parse messages: Missing 'role' in message", "rejected"],
		[
			"\n------------\nWhile executing CallExpression\nError: Jinja Exception: System message must be at the beginning.",
			"rejected",
		],
		// llama.cpp's errors about its own output or state are not the request's fault.
		["Failed to parse input at pos 17: {", "failed"],
		["got exception: Unexpected empty grammar stack after accepting piece", "failed"],
		["Compute error.", "failed"],
	])("llama.cpp's 500 with the text %p becomes `%s`", (message, kind) => {
		expect(of("llama.cpp", 500, { error: { code: 500, message, type: "server_error" } }).kind as string).toBe(kind);
		// For other servers, status 500 means a failure of the server.
		expect(of("vllm", 500, { error: { code: 500, message, type: "server_error" } }).kind).toBe("failed");
	});
});

describe("a malformed stream", () => {
	const reader = () => new ChatReader(DIALECTS.openai);
	const choice = (more: object) => JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: null, ...more }] });

	test("fails on an event that is no JSON object", () => {
		for (const payload of ["{", "7", "null", "[]", '"x"', `${"[".repeat(50_000)}`]) {
			expect(() => reader().accept(payload)).toThrow(expect.objectContaining({ name: "UpstreamFailure" }));
		}
	});

	test("is read without its values of wrong types", () => {
		const chat = reader();
		for (const delta of [7, "x", [], { tool_calls: "x" }, { tool_calls: [7] }, { role: "user" }]) {
			expect(chat.accept(choice({ delta }))).toBeUndefined();
		}
		// Content of an unknown type fails the call, because dropping it would leave a gap in the answer.
		for (const content of [7, true, { a: 1 }, [7], [{ type: "text", text: "x" }, { type: "hologram" }]])
			expect(() => reader().accept(choice({ delta: { content } }))).toThrow(
				expect.objectContaining({ kind: "failed" }),
			);
		expect(chat.accept('{"choices":{"0":1}}')).toBeUndefined();
		expect(chat.accept('{"choices":[null,7]}')).toBeUndefined();
		expect(chat.accept("")).toBeUndefined();
		expect(chat.accept(choice({ delta: { role: "user", content: "x" } }))?.choices[0]?.delta).toEqual({
			role: "assistant",
			content: "x",
		});
	});

	test("fails on an impossible index or `abort`, and reads unknown finishes as `stop`", () => {
		for (const index of [-1, 128, 1e9, "0", 0.5])
			expect(() => reader().accept(choice({ index }))).toThrow(expect.objectContaining({ kind: "failed" }));
		expect(() => reader().accept(choice({ finish_reason: "abort" }))).toThrow(
			expect.objectContaining({ kind: "failed" }),
		);
		expect(reader().accept(choice({ finish_reason: "eos_token" }))?.choices[0]?.finish_reason).toBe("stop");
		expect(reader().accept(choice({ finish_reason: "surprise" }))?.choices[0]?.finish_reason).toBe("stop");
	});

	test("does not end with an empty finish reason", () => {
		const chat = reader();
		chat.accept(choice({ delta: { content: "x" }, finish_reason: "" }));
		expect(chat.finished()).toBe(false);
		expect(() => chat.accept("[DONE]")).toThrow(expect.objectContaining({ kind: "died" }));
	});

	test("is complete after its finish reason even without usage and end marker", () => {
		const chat = reader();
		chat.accept(choice({ delta: { content: "x" }, finish_reason: "stop" }));
		expect([chat.finished(), chat.usageIsFinal()]).toEqual([true, false]);
		chat.accept('{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}');
		expect(chat.usageIsFinal()).toBe(true);
		chat.accept(" [DONE] ");
		chat.accept('{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1000}}');
		expect(chat.usage()?.completionTokens).toBe(1);
	});

	test("has no final token count if output follows the last running count", () => {
		const usage = { prompt_tokens: 3, completion_tokens: 1 };
		for (const event of [
			{ choices: [{ index: 0, delta: { content: "a" } }], usage },
			{ choices: [{ index: 0, delta: { content: "a" }, usage }] },
		]) {
			const chat = reader();
			chat.accept(JSON.stringify(event));
			expect(chat.usage()).toMatchObject({ promptTokens: 3, completionTokens: 1 });
			chat.accept(choice({ delta: { content: "b" } }));
			expect(chat.usage()).toMatchObject({ promptTokens: 3, completionTokens: undefined });
			expect(chat.usageIsFinal()).toBe(false);
		}
	});

	test("is read with log probabilities that are copied field by field", () => {
		const content = [
			{ token: "a", logprob: -0.5, bytes: [97], token_id: 7, top_logprobs: [{ token: "b", logprob: -2, rank: 1 }] },
		];
		const chunk = reader().accept(choice({ delta: { content: "a" }, logprobs: { content, prompt: "secret" } }));
		expect(chunk?.choices[0]?.logprobs).toEqual({
			content: [{ token: "a", logprob: -0.5, bytes: [97], top_logprobs: [{ token: "b", logprob: -2, bytes: null }] }],
			refusal: null,
		});
	});
});

test.each<[object, boolean]>([
	[{}, true],
	[{ choices: null }, true],
	[{ choices: [] }, false],
	[{ data: [] }, false],
	[{ results: [] }, false],
	[{ text: "" }, false],
])("an answer with `message` and %j counts as an error: %p", (more, expected) => {
	expect(isErrorBody({ message: "Success", ...more })).toBe(expected);
});

test.each(["\n[DONE]", "\n\ndata: [DONE]\n\n", "\ndata:[DONE]\n\ndata: [DONE]"])(
	"an event is read if the end marker %j follows its JSON",
	(marker) => {
		expect(parseJson(`{"text":"a\\n[DONE]"}${marker}`)).toEqual({ text: "a\n[DONE]" });
		expect([parseJson(`{"text":${marker}`), parseJson(marker), parseJson(`{} x${marker}`)]).toEqual([
			undefined,
			undefined,
			undefined,
		]);
	},
);

test.each([" [DONE]", "\n\n[DONE]"])(
	"the JSON parser refuses a text of thousands of end markers %j without delay",
	(marker) => {
		const startedMs = performance.now();
		for (const end of ["", "x"]) expect(parseJson(`"${marker.repeat(18_000)}${end}`)).toBeUndefined();
		expect(performance.now() - startedMs).toBeLessThan(500);
	},
);

describe("a malformed answer that is not streamed", () => {
	const shapes = ["", "[]", "{}", '{"choices":[]}', '{"choices":[{}]}', '{"choices":"x"}'];
	test.each([...shapes, '{"choices":[{"message":{"content":"x"}}]}'])("with the body %s is a failure", (body) => {
		expect(() => readChatReply(parseJson(body), DIALECTS.openai)).toThrow(
			expect.objectContaining({ name: "UpstreamFailure" }),
		);
	});
});
