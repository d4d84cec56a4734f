import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";

const provider = createOpenAICompatible({
  name: "{{serviceName}}",
  baseURL: "{{baseUrl}}",
  apiKey: process.env.{{keyVariable}},
  includeUsage: true,
});
const { textStream } = streamText({ model: provider("{{model}}"), prompt: "{{question}}" });
for await (const text of textStream) {
  process.stdout.write(text);
}
