import { describe, expect, test } from "bun:test";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { withChat } from "../../support/service.ts";
import { reply } from "../../support/upstream-server.ts";

const { upstream, service } = await withChat({ dialect: "vllm" });
const customer = await service.customer();

const post = (body: unknown) => service.chat(customer.secret, body);

const weather = { type: "function", function: { name: "weather" } };

describe("400 invalid_request", () => {
	const cases: [string, Record<string, unknown>, string | null][] = [
		["a message of an unknown role", { messages: [{ role: "robot", content: "x" }] }, "messages[0].role"],
		["a message without content", { messages: [{ role: "user" }] }, "messages[0].content"],
		["content of another type", { messages: [{ role: "user", content: 5 }] }, "messages[0].content"],
		["stream_options without stream", { stream_options: { include_usage: true } }, "stream_options"],
		["stream_options with stream: false", { stream: false, stream_options: {} }, "stream_options"],
		[
			"a response format without its schema",
			{ response_format: { type: "json_schema" } },
			"response_format.json_schema",
		],
		["a response format whose type is no text", { response_format: { type: 5 } }, "response_format.type"],
		["a tool of a type that is no text", { tools: [weather, { type: 5 }] }, "tools[1].type"],
		["a tool without its function", { tools: [{ name: "weather" }] }, "tools[0].function"],
		["a function without a name", { tools: [{ type: "function", function: {} }] }, "tools[0].function.name"],
		["a part that is no object", { messages: [{ role: "user", content: ["x"] }] }, "messages[0].content[0]"],
		["a stop that is no text", { stop: ["a", 5] }, "stop[1]"],
		["a bias that is no number", { logit_bias: { "50256": "high" } }, "logit_bias[50256]"],
	];
	for (const [name, change, param] of cases)
		test(`names the wrong field of ${name}`, async () => {
			const { status, error, headers } = await errorOf(await post({ ...ask(), ...change }));
			expect(status).toBe(400);
			expect(error).toMatchObject({ code: "invalid_request", type: "invalid_request_error", param });
			expect(headers.get("x-should-retry")).toBeNull();
		});

	test("describes the expected value without quoting the client's value", async () => {
		const text = async (change: Record<string, unknown>) =>
			(await errorOf(await post({ ...ask(), ...change }))).error.message;
		expect(await text({ temperature: "canary" })).toBe("`temperature` must be a number.");
		expect(await text({ temperature: 2.5 })).toBe(
			"`temperature` is not allowed: expected number to be less or equal to 2.",
		);
		expect(await text({ tools: [{ type: "function", function: {} }] })).toBe("`tools[0].function.name` is missing.");
		expect(await text({ messages: [{ role: "user", content: 5 }] })).toBe(
			"`messages[0].content` must be a string or an array.",
		);
		expect(await text({ response_format: { type: "canary" } })).toBe(
			"This model supports `text`, `json_object` and `json_schema`.",
		);
	});

	test("costs nothing and is not sent to a model server", async () => {
		expect(upstream.requests).toHaveLength(0);
		await expectUncharged(service, customer.accountId);
	});

	test("names the field that a model server refused, without the server's text", async () => {
		for (const stream of [false, true]) {
			upstream.next(
				reply().errorStatus(400, {
					error: { message: "bad temperature at /srv", type: "BadRequestError", param: "temperature", code: 400 },
				}),
			);
			const { status, error } = await errorOf(await post(ask("hi", { stream })));
			expect(status).toBe(400);
			expect(error).toMatchObject({ code: "invalid_request", param: "temperature" });
			expect(error.message).not.toContain("/srv");
		}
		await expectUncharged(service, customer.accountId);
	});

	test.each([
		["Conversation roles must alternate: canary", "order or kind of roles"],
		["`tool_choice` canary requires a parser", "support tools"],
		["canary is not a multimodal model", "image, audio or video"],
		["Unsupported JSON schema: canary", "`response_format`"],
		["no chat template: canary", "chat template"],
		["top_k must be -1 or canary", "sampling parameter"],
		["unknown revision: canary", "the model's documentation"],
		["[{'loc': ('body', 'canary'), 'input': {'messages': [{'content': 'roles, tools, images'}]}}]", "documentation"],
	])("names the probable cause if a server refuses without naming a field: %s", async (message, hint) => {
		upstream.next(reply().errorStatus(400, { error: { message, type: "BadRequestError", param: null, code: 400 } }));
		const { error } = await errorOf(await post(ask()));
		expect(error).toMatchObject({ code: "invalid_request", param: null, message: expect.stringContaining(hint) });
		expect(JSON.stringify(error)).not.toContain("canary");
	});
});
