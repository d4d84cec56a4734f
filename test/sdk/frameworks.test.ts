import { expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { embedMany, generateImage, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { withService } from "../support/service.ts";
import { deployment, vectorOf, withEndpoints } from "../support/upstream-endpoints.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";

const endpoints = withEndpoints("vllm");
const vectors = withEndpoints("tei");
const chats = withUpstream("vllm");
const at = { url: endpoints.url, dialect: "vllm" as const };
const tokens = 'input: "1", output: "2"';
const parameters = "max_tokens, temperature, tools, tool_choice";
const service = await withService({
	models: [
		deployment({ id: "chat", url: chats.url, rates: tokens, parameters }),
		deployment({ id: "text", ...at, rates: tokens, parameters }),
		deployment({ id: "embedding", kind: "embedding", ...at, rates: 'input: "1"' }),
		deployment({ id: "vectors", kind: "embedding", url: vectors.url, dialect: "tei", rates: 'input: "1"' }),
		deployment({ id: "image", kind: "image", ...at, rates: 'image: "0.01"', parameters: "n, size, response_format" }),
	].join("\n"),
});
const { secret } = await service.customer();
const provider = createOpenAICompatible({ name: "tollgate", baseURL: `${service.url}/v1`, apiKey: secret });
const common = { apiKey: secret, configuration: { baseURL: `${service.url}/v1` }, maxRetries: 0 };
const langChain = new ChatOpenAI({ model: "chat", ...common });

test("the AI SDK reads text and usage, streamed or not", async () => {
	const whole = await generateText({ model: provider("chat"), prompt: "hello there" });
	expect(whole.text).toBe("echo: hello there");
	expect(whole.finishReason).toBe("stop");
	expect(whole.usage).toMatchObject({ inputTokens: 5, outputTokens: 3 });
	const stream = streamText({ model: provider("chat"), prompt: "hello there" });
	expect(await stream.text).toBe("echo: hello there");
	expect(await stream.usage).toMatchObject({ inputTokens: 5, outputTokens: 3 });
});

test("the AI SDK calls a tool and sends its result", async () => {
	chats.next(reply().toolCall("add", { a: 2, b: 3 }), reply().text("The sum is five."));
	const add = tool({
		description: "Adds.",
		inputSchema: jsonSchema<{ a: number; b: number }>({
			type: "object",
			properties: { a: { type: "number" }, b: { type: "number" } },
		}),
		execute: async ({ a, b }) => a + b,
	});
	const answer = await generateText({
		model: provider("chat"),
		prompt: "2 + 3?",
		tools: { add },
		stopWhen: stepCountIs(3),
	});
	expect(answer.text).toBe("The sum is five.");
	expect(answer.steps[0]?.toolResults[0]?.output).toBe(5);
});

test("the AI SDK reads an answer of a completion model", async () => {
	const answer = await generateText({ model: provider.completionModel("text"), prompt: "once upon" });
	expect(answer.text).toBe(" one two three");
	const stream = streamText({ model: provider.completionModel("text"), prompt: "once upon" });
	expect(await stream.text).toBe(" one two three");
});

test("the AI SDK reads embeddings and images", async () => {
	const embedder = provider.embeddingModel("embedding");
	const { embeddings, usage } = await embedMany({ model: embedder, values: ["hello", "you"] });
	expect(embeddings).toEqual([vectorOf("hello"), vectorOf("you")]);
	expect(usage.tokens).toBe(2);
	const { images } = await generateImage({ model: provider.imageModel("image"), prompt: "a cat", n: 2 });
	expect(images.map((image) => image.base64)).toEqual(["aGVsbG8=", "aGVsbG8="]);
});

test("the AI SDK keeps the message of an error", async () => {
	const asked = generateText({ model: provider("nothing"), prompt: "x", maxRetries: 0 });
	await expect(asked).rejects.toThrow("The model `nothing` does not exist or is not connected");
});

test("the AI SDK reads an error in a stream as an error part", async () => {
	chats.next(reply().text("a b c d").errorEvent(2));
	const errors: unknown[] = [];
	const stream = streamText({ model: provider("chat"), prompt: "x", onError: ({ error }) => void errors.push(error) });
	let text = "";
	for await (const part of stream.textStream) text += part;
	expect(text).toBe("a b");
	expect(errors).toHaveLength(1);
});

test("LangChain reads a chat with its usage, streamed or not", async () => {
	const answer = await langChain.invoke("hello there");
	expect(answer.content).toBe("echo: hello there");
	expect(answer.usage_metadata).toMatchObject({ input_tokens: 5, output_tokens: 3, total_tokens: 8 });
	let text = "";
	let tokens = 0;
	for await (const chunk of await langChain.stream("hello there")) {
		text += chunk.content;
		tokens = (chunk.usage_metadata as { total_tokens: number } | undefined)?.total_tokens ?? tokens;
	}
	expect([text, tokens]).toEqual(["echo: hello there", 8]);
});

test("LangChain binds and calls tools", async () => {
	chats.next(reply().toolCall("find", { q: "Zürich" }));
	const find = {
		type: "function" as const,
		function: { name: "find", parameters: { type: "object", properties: {} } },
	};
	const answer = await langChain.bindTools([find]).invoke("where?");
	expect(answer.tool_calls).toMatchObject([{ name: "find", args: { q: "Zürich" } }]);
});

test("LangChain embeds documents in several small requests", async () => {
	const embedder = new OpenAIEmbeddings({ model: "vectors", ...common });
	const texts = Array.from({ length: 100 }, (_, at) => "x".repeat(1 + (at % 9)));
	expect(await embedder.embedDocuments(texts)).toEqual(texts.map(vectorOf));
	expect(await embedder.embedQuery("hello")).toEqual(vectorOf("hello"));
	expect(vectors.requests).toHaveLength(5);
});

test("LangChain does not retry an error for lack of credit", async () => {
	const poor = await service.customer({ exactCredit: 1 });
	let calls = 0;
	const counting = (...args: Parameters<typeof fetch>) => {
		calls += 1;
		return fetch(...args);
	};
	const configuration = { ...common.configuration, fetch: counting };
	const model = new ChatOpenAI({ model: "chat", ...common, configuration, apiKey: poor.secret, maxRetries: 6 });
	await expect(model.invoke("hello")).rejects.toMatchObject({ status: 402, code: "insufficient_quota" });
	expect(calls).toBe(1);
});
