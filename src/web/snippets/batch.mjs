import { createReadStream } from "node:fs";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "{{baseUrl}}", apiKey: process.env.{{keyVariable}} });
const file = await client.files.create({ file: createReadStream("requests.jsonl"), purpose: "batch" });
const batch = await client.batches.create({
  input_file_id: file.id,
  endpoint: "/v1/chat/completions",
  completion_window: "24h",
});
