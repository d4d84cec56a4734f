import { expect, test } from "bun:test";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { readBatchRequest } from "../../src/gateway/batches/batch-answers.ts";
import { ChatRequestBody } from "../../src/gateway/chat/chat-request.ts";
import { CompletionRequestBody } from "../../src/gateway/completions/completions.ts";

const NAMES = [
	"a",
	"",
	"1",
	"a\nb",
	"\n",
	"a\r",
	"\u2028",
	"a\u2029",
	"__proto__",
	"constructor",
	"\u{1f600}",
	"x".repeat(64),
];
const named = (name: string, value: unknown) => JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`);

test("the metadata values of a batch have a maximum length whatever their name", () => {
	const read = (metadata: unknown) => {
		const body = { input_file_id: "file_1", endpoint: "/v1/embeddings", completion_window: "24h", metadata };
		try {
			return readBatchRequest(body, null).metadata;
		} catch (error) {
			return String((error as { param?: unknown }).param).split(/[.[]/)[0];
		}
	};
	for (const name of NAMES) {
		for (const value of ["", "x".repeat(512)])
			expect([name, read(named(name, value)) as unknown]).toEqual([name, named(name, value)]);
		for (const value of ["x".repeat(513), 1, null, true, [], { deep: "x" }])
			expect([name, value, read(named(name, value)) as unknown]).toEqual([name, value, "metadata"]);
	}
	expect(read(Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`${at}\n`, "x"])))).not.toBe("metadata");
	expect(read(Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`${at}\n`, "x"])))).toBe("metadata");
});

test("the logit biases of a request must be from -100 to 100 whatever their name", () => {
	for (const [schema, prompt] of [
		[ChatRequestBody, { messages: [{ role: "user", content: "hi" }] }],
		[CompletionRequestBody, { prompt: "hi" }],
	] as const) {
		const check = TypeCompiler.Compile(schema);
		for (const name of NAMES)
			for (const [value, isOne] of [
				[-100, true],
				[100, true],
				[0.5, true],
				[-100.001, false],
				[101, false],
				["1", false],
				[null, false],
			] as const)
				expect([name, value, check.Check({ model: "m", ...prompt, logit_bias: named(name, value) })]).toEqual([
					name,
					value,
					isOne,
				]);
	}
});
