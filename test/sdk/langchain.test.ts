import { expect, test } from "bun:test";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { withService } from "../support/service.ts";
import { deployment, vectorOf, withEndpoints } from "../support/upstream-endpoints.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";

const endpoints = withEndpoints("tei");
const chats = withUpstream("vllm");
const parameters = "max_tokens, temperature, tools, tool_choice";
const service = await withService({
	models: [
		deployment({ id: "chat", url: chats.url, parameters }),
		deployment({ id: "embedding", kind: "embedding", url: endpoints.url, dialect: "tei", rates: 'input: "1"' }),
	].join("\n"),
});
const { secret } = await service.customer();
const common = { apiKey: secret, configuration: { baseURL: `${service.url}/v1` }, maxRetries: 0 };

test("LangChain reads a chat with its usage", async () => {
	const answer = await new ChatOpenAI({ model: "chat", ...common }).invoke("hello there");
	expect(answer.content).toBe("echo: hello there");
	expect(answer.usage_metadata).toMatchObject({ input_tokens: 5, output_tokens: 3, total_tokens: 8 });
});

test("LangChain reads a streamed chat with its usage", async () => {
	let text = "";
	let tokens = 0;
	for await (const chunk of await new ChatOpenAI({ model: "chat", ...common }).stream("hello there")) {
		text += chunk.content;
		tokens = (chunk.usage_metadata as { total_tokens: number } | undefined)?.total_tokens ?? tokens;
	}
	expect(text).toBe("echo: hello there");
	expect(tokens).toBe(8);
});

test("LangChain binds and calls tools", async () => {
	chats.next(reply().toolCall("find", { q: "Zürich" }));
	const find = {
		type: "function" as const,
		function: { name: "find", parameters: { type: "object", properties: {} } },
	};
	const answer = await new ChatOpenAI({ model: "chat", ...common }).bindTools([find]).invoke("where?");
	expect(answer.tool_calls).toMatchObject([{ name: "find", args: { q: "Zürich" } }]);
});

test("LangChain embeds documents in several small requests", async () => {
	const embedder = new OpenAIEmbeddings({ model: "embedding", ...common });
	const texts = Array.from({ length: 100 }, (_, at) => "x".repeat(1 + (at % 9)));
	expect(await embedder.embedDocuments(texts)).toEqual(texts.map(vectorOf));
	expect(await embedder.embedQuery("hello")).toEqual(vectorOf("hello"));
	expect(endpoints.requests).toHaveLength(5);
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
