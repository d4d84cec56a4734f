import { brand } from "../brand.ts";
import type { Snippet } from "../parts/code.tsx";

/** Environment variable for the key. Its name contains the service's name: users may have keys of several services. */
export const KEY_VARIABLE = keyVariableName(brand.name);

/** Returns the variable's name, which never begins with a digit, because shells refuse that. */
export function keyVariableName(name: string): string {
	return `${name.toUpperCase().replace(/[^A-Z0-9]+/g, "_")}_API_KEY`.replace(/^(?=\d)/, "_");
}

export interface ChatSnippetValues {
	readonly baseUrl: string;
	readonly model: string;
	readonly messages: readonly object[];
	/** Request fields other than model and messages. */
	readonly options?: Readonly<Record<string, unknown>>;
	readonly stream?: boolean;
}

export function chatSnippets(facts: ChatSnippetValues): readonly Snippet[] {
	return [
		{ label: "curl", code: curlSnippet(facts) },
		{ label: "Python", code: pythonSnippet(facts) },
		{ label: "TypeScript", code: typescriptSnippet(facts) },
	];
}

function bodyOf(facts: ChatSnippetValues): Record<string, unknown> {
	return { model: facts.model, messages: facts.messages, ...facts.options, ...(facts.stream ? { stream: true } : {}) };
}

export function curlSnippet(facts: ChatSnippetValues): string {
	const body = JSON.stringify(bodyOf(facts), null, 2).replaceAll("'", "'\\''");
	return `curl ${facts.stream ? "-N " : ""}${facts.baseUrl}/chat/completions \\
  -H "Authorization: Bearer $${KEY_VARIABLE}" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`;
}

export function pythonSnippet(facts: ChatSnippetValues): string {
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

export function typescriptSnippet(facts: ChatSnippetValues): string {
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
