import { ChatOpenAI } from "@langchain/openai";

const model = new ChatOpenAI({
  model: "{{model}}",
  apiKey: process.env.{{keyVariable}},
  configuration: { baseURL: "{{baseUrl}}" },
});
for await (const chunk of await model.stream("{{question}}")) {
  process.stdout.write(chunk.content);
}
