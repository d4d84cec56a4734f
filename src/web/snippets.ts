import { brand } from "./brand.ts";
import type { Snippet } from "./parts/code.tsx";

/** Code that works as pasted, for a base address, a model and a key. */

/** Named after the service: people have keys of several. */
export const KEY_VARIABLE = keyVariableOf(brand.name);

/** No shell takes a name that begins with a digit. */
export function keyVariableOf(name: string): string {
	return `${name.toUpperCase().replace(/[^A-Z0-9]+/g, "_")}_API_KEY`.replace(/^(?=\d)/, "_");
}

export interface ChatSnippetFacts {
	readonly baseUrl: string;
	readonly model: string;
	readonly messages: readonly object[];
	/** Beside model and messages. */
	readonly options?: Readonly<Record<string, unknown>>;
	readonly stream?: boolean;
}

export function chatSnippets(facts: ChatSnippetFacts): readonly Snippet[] {
	return [
		{ label: "curl", code: curlSnippet(facts) },
		{ label: "Python", code: pythonSnippet(facts) },
		{ label: "TypeScript", code: typescriptSnippet(facts) },
	];
}

/** The three things that change for who comes from the OpenAI client. */
export function changeSnippets(baseUrl: string): readonly Snippet[] {
	return [
		{
			label: "Python",
			code: `from openai import OpenAI

client = OpenAI(
    base_url="${baseUrl}",   # 1
    api_key=os.environ["${KEY_VARIABLE}"],   # 2
)
client.chat.completions.create(
    model="MODEL_ID",   # 3: an id from GET /v1/models
    messages=[{"role": "user", "content": "Hello!"}],
)`,
		},
		{
			label: "TypeScript",
			code: `import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "${baseUrl}", // 1
  apiKey: process.env.${KEY_VARIABLE}, // 2
});
await client.chat.completions.create({
  model: "MODEL_ID", // 3: an id from GET /v1/models
  messages: [{ role: "user", content: "Hello!" }],
});`,
		},
		{ label: "Environment", code: `OPENAI_BASE_URL=${baseUrl}\nOPENAI_API_KEY=$${KEY_VARIABLE}` },
	];
}

function bodyOf(facts: ChatSnippetFacts): Record<string, unknown> {
	return {
		model: facts.model,
		messages: facts.messages,
		...facts.options,
		...(facts.stream ? { stream: true } : {}),
	};
}

export function curlSnippet(facts: ChatSnippetFacts): string {
	const body = JSON.stringify(bodyOf(facts), null, 2).replaceAll("'", "'\\''");
	return `curl ${facts.stream ? "-N " : ""}${facts.baseUrl}/chat/completions \\
  -H "Authorization: Bearer $${KEY_VARIABLE}" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`;
}

export function pythonSnippet(facts: ChatSnippetFacts): string {
	const fields = Object.entries(bodyOf(facts)).map(([name, value]) => `    ${name}=${pythonText(value, 4)},`);
	const read = facts.stream
		? `for chunk in answer:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`
		: "print(answer.choices[0].message.content)\nprint(answer.usage)";
	return `import os
from openai import OpenAI

client = OpenAI(base_url="${facts.baseUrl}", api_key=os.environ["${KEY_VARIABLE}"])

answer = client.chat.completions.create(
${fields.join("\n")}
)
${read}`;
}

export function typescriptSnippet(facts: ChatSnippetFacts): string {
	const fields = Object.entries(bodyOf(facts)).map(
		([name, value]) => `  ${name}: ${indented(JSON.stringify(value, null, 2), 2)},`,
	);
	const read = facts.stream
		? `for await (const chunk of answer) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}`
		: "console.log(answer.choices[0].message.content, answer.usage);";
	return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${facts.baseUrl}", apiKey: process.env.${KEY_VARIABLE} });

const answer = await client.chat.completions.create({
${fields.join("\n")}
});
${read}`;
}

/** A JSON value in Python's words. Strings in JSON are strings in Python. */
function pythonText(value: unknown, indent: number): string {
	const pad = " ".repeat(indent);
	if (value === null) return "None";
	if (typeof value === "boolean") return value ? "True" : "False";
	if (Array.isArray(value)) {
		if (value.length === 0) return "[]";
		return `[\n${value.map((item) => `${pad}    ${pythonText(item, indent + 4)},`).join("\n")}\n${pad}]`;
	}
	if (typeof value === "object") {
		const fields = Object.entries(value).map(
			([name, item]) => `${JSON.stringify(name)}: ${pythonText(item, indent + 4)}`,
		);
		return `{${fields.join(", ")}}`;
	}
	return JSON.stringify(value);
}

const indented = (text: string, spaces: number): string => text.replaceAll("\n", `\n${" ".repeat(spaces)}`);

/** Sending a file of requests, and beginning a batch with it. */
export const batchSnippets = (baseUrl: string): readonly Snippet[] => [
	{
		label: "Python",
		code: `import os
from openai import OpenAI

client = OpenAI(base_url="${baseUrl}", api_key=os.environ["${KEY_VARIABLE}"])
file = client.files.create(file=open("requests.jsonl", "rb"), purpose="batch")
batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
# Once client.batches.retrieve(batch.id).status is "completed":
# client.files.content(output_file_id).text`,
	},
	{
		label: "TypeScript",
		code: `import { createReadStream } from "node:fs";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${baseUrl}", apiKey: process.env.${KEY_VARIABLE} });
const file = await client.files.create({ file: createReadStream("requests.jsonl"), purpose: "batch" });
const batch = await client.batches.create({
  input_file_id: file.id,
  endpoint: "/v1/chat/completions",
  completion_window: "24h",
});`,
	},
];

/** Whether what came to a webhook is from us. */
export const WEBHOOK_SNIPPETS: readonly Snippet[] = [
	{
		label: "Python",
		code: `client = OpenAI(api_key="unused", webhook_secret=os.environ["WEBHOOK_SECRET"])
event = client.webhooks.unwrap(body, headers)  # raises unless the signature is right
print(event.type, event.data.id)`,
	},
	{
		label: "TypeScript",
		code: `const client = new OpenAI({ apiKey: "unused", webhookSecret: process.env.WEBHOOK_SECRET });
const event = await client.webhooks.unwrap(body, headers); // throws unless the signature is right
console.log(event.type, event.data.id);`,
	},
];
