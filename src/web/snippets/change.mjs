import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "{{baseUrl}}", // 1
  apiKey: process.env.{{keyVariable}}, // 2
});
await client.chat.completions.create({
  model: "MODEL_ID", // 3: an id from GET /v1/models
  messages: [{ role: "user", content: "Hello!" }],
});
