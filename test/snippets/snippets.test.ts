/**
 * The instructions on the console's pages result in a streamed answer and a charge. This file runs tools that need only
 * this project's packages; `bun run snippets` downloads and runs all tools.
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { keyVariableName } from "../../src/web/snippets/chat.ts";
import { TOOLS } from "../../src/web/snippets/tools.ts";
import { temporaryFolder, testsMayTake } from "../support/at-end.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { withService } from "../support/service.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { ANSWER, catalogue, factsFor, isChargedOnce, MODEL, saidBy } from "./customer.ts";
import { playTool } from "./play-tool.ts";
import { NOT_RUN, readRows, SUCCESS_RESULT } from "./results.ts";
import { TRIALS } from "./trials.ts";

testsMayTake(60_000);

const HERE = ["curl", "openai-javascript", "langchain-javascript", "ai-sdk"];
const upstream = withUpstream("vllm");
const service = await withService({ models: catalogue(upstream) });
const root = temporaryFolder(quickFolder());
mkdirSync(join(root, "bin"));
writeFileSync(join(root, "bin/node"), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`);
chmodSync(join(root, "bin/node"), 0o755);

describe("a tool that is run as its docs page shows", () => {
	const tools = TOOLS.filter(({ id }) => HERE.includes(id));
	test.each(tools.map((tool) => [tool.id, tool] as const))(
		"%s prints the streamed answer and is charged once",
		async (_, tool) => {
			const { accountId, secret } = await service.customer();
			const folder = join(root, tool.id);
			mkdirSync(folder);
			symlinkSync(join(import.meta.dir, "../../node_modules"), join(folder, "node_modules"));
			const env = { PATH: `${join(root, "bin")}:${Bun.env.PATH}` };
			const outcome = await playTool(tool, factsFor(service, secret), { folder, env, timeoutMs: 50_000 });
			expect(outcome).toMatchObject({ code: 0, err: tool.id === "curl" ? expect.anything() : "" });
			expect(saidBy(tool, outcome)).toBe(ANSWER);
			expect(await isChargedOnce(service, accountId)).toBe(true);
		},
	);
});

test("the service answers Cursor's requests for models and for a streamed tool call", async () => {
	const { accountId, secret } = await service.customer();
	const client = new OpenAI({ apiKey: secret, baseURL: `${service.url}/v1`, maxRetries: 0 });
	const listed: string[] = [];
	for await (const { id } of client.models.list()) listed.push(id);
	expect(listed).toEqual([MODEL]);
	upstream.next(reply().toolCall("read_file", { path: "main.go" }));
	const parameters = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
	const stream = client.chat.completions.stream({
		model: MODEL,
		messages: [{ role: "user", content: "What is in main.go?" }],
		tools: [{ type: "function", function: { name: "read_file", parameters } }],
		stream_options: { include_usage: true },
	});
	const { choices, usage } = await stream.finalChatCompletion();
	expect(choices[0]?.message.tool_calls).toMatchObject([
		{ type: "function", function: { name: "read_file", arguments: '{"path":"main.go"}' } },
	]);
	expect(usage?.completion_tokens).toBeGreaterThan(0);
	expect(await isChargedOnce(service, accountId)).toBe(true);
});

test("every tool in results.md has passed its test with the pinned versions", () => {
	const rows = readRows();
	expect([...rows.keys()].sort()).toEqual(TOOLS.map(({ id }) => id).sort());
	for (const tool of TOOLS) {
		const { notTried, versions } = TRIALS[tool.id] ?? {};
		expect([tool.id, [notTried ?? SUCCESS_RESULT, NOT_RUN].includes(rows.get(tool.id)?.[4] ?? "")]).toEqual([
			tool.id,
			true,
		]);
		for (const step of tool.steps(factsFor(service, "key")))
			if (step.does === "packages") expect(Object.keys(versions ?? {})).toEqual([...step.packages]);
	}
	const pom = TOOLS.find(({ id }) => id === "openai-java")?.steps(factsFor(service, "key"))[0];
	expect(pom).toMatchObject({
		code: expect.stringContaining(`<version>${TRIALS["openai-java"]?.versions["com.openai:openai-java"]}<`),
	});
});

test("any service name becomes a valid shell variable", () => {
	expect(["Tollgate", "9 Lives", "東京 AI"].map(keyVariableName)).toEqual([
		"TOLLGATE_API_KEY",
		"_9_LIVES_API_KEY",
		"_AI_API_KEY",
	]);
});
