import { KEY_VARIABLE } from "../snippets.ts";
import { t } from "../texts.tsx";
import type { Tool, ToolFacts } from "./tool.ts";
import { keyStep } from "./tool.ts";

/** Libraries that stand on a model, each by its own way to an address that speaks OpenAI's format. */

const pythonTool = (tool: { id: string; name: string; packages: string[]; code(facts: ToolFacts): string }): Tool => ({
	id: tool.id,
	name: tool.name,
	steps: (facts) => [
		{ does: "packages", by: "pip", packages: tool.packages },
		{ does: "file", path: "chat.py", code: tool.code(facts) },
		keyStep(facts),
		{ does: "shell", say: t("Run it"), code: "python chat.py" },
	],
});

const nodeTool = (tool: { id: string; name: string; packages: string[]; code(facts: ToolFacts): string }): Tool => ({
	id: tool.id,
	name: tool.name,
	steps: (facts) => [
		{ does: "packages", by: "npm", packages: tool.packages },
		{ does: "file", path: "chat.mjs", code: tool.code(facts) },
		keyStep(facts),
		{ does: "shell", say: t("Run it"), code: "node chat.mjs" },
	],
});

const langchainPython = pythonTool({
	id: "langchain-python",
	name: "LangChain",
	packages: ["langchain-openai"],
	code: ({ baseUrl, model, question }) => `import os
from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    model=${JSON.stringify(model)},
    base_url=${JSON.stringify(baseUrl)},
    api_key=os.environ["${KEY_VARIABLE}"],
)
for chunk in model.stream(${JSON.stringify(question)}):
    print(chunk.content, end="", flush=True)`,
});

const langchainJavascript = nodeTool({
	id: "langchain-javascript",
	name: "LangChain.js",
	packages: ["@langchain/openai", "@langchain/core"],
	code: ({ baseUrl, model, question }) => `import { ChatOpenAI } from "@langchain/openai";

const model = new ChatOpenAI({
  model: ${JSON.stringify(model)},
  apiKey: process.env.${KEY_VARIABLE},
  configuration: { baseURL: ${JSON.stringify(baseUrl)} },
});
for await (const chunk of await model.stream(${JSON.stringify(question)})) {
  process.stdout.write(chunk.content);
}`,
});

const llamaIndex = pythonTool({
	id: "llamaindex",
	name: "LlamaIndex",
	packages: ["llama-index-llms-openai-like"],
	code: ({ baseUrl, model, question }) => `import os
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(
    model=${JSON.stringify(model)},
    api_base=${JSON.stringify(baseUrl)},
    api_key=os.environ["${KEY_VARIABLE}"],
    is_chat_model=True,
    is_function_calling_model=True,
)
for chunk in llm.stream_chat([ChatMessage(role="user", content=${JSON.stringify(question)})]):
    print(chunk.delta, end="", flush=True)`,
});

const aiSdk = nodeTool({
	id: "ai-sdk",
	name: "AI SDK",
	packages: ["ai", "@ai-sdk/openai-compatible"],
	code: ({
		baseUrl,
		model,
		serviceName,
		question,
	}) => `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";

const provider = createOpenAICompatible({
  name: ${JSON.stringify(serviceName)},
  baseURL: ${JSON.stringify(baseUrl)},
  apiKey: process.env.${KEY_VARIABLE},
  includeUsage: true,
});
const { textStream } = streamText({ model: provider(${JSON.stringify(model)}), prompt: ${JSON.stringify(question)} });
for await (const text of textStream) {
  process.stdout.write(text);
}`,
});

const litellm = pythonTool({
	id: "litellm",
	name: "LiteLLM",
	packages: ["litellm"],
	code: ({ baseUrl, model, question }) => `import os
from litellm import completion

answer = completion(
    model=${JSON.stringify(`openai/${model}`)},
    api_base=${JSON.stringify(baseUrl)},
    api_key=os.environ["${KEY_VARIABLE}"],
    messages=[{"role": "user", "content": ${JSON.stringify(question)}}],
    stream=True,
)
for chunk in answer:
    print(chunk.choices[0].delta.content or "", end="", flush=True)`,
});

export const FRAMEWORK_TOOLS: readonly Tool[] = [langchainPython, langchainJavascript, llamaIndex, aiSdk, litellm];
