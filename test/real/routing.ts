/**
 * Growing conversations before two servers of llama.cpp with random weights: times to the first token and cached tokens,
 * with this checkout's choice of a server and another's.
 *
 *     python -m venv real && real/bin/pip install xllamacpp gguf numpy
 *     bun run routing:real --python real/bin/python --before PATH      a checkout of the version to compare with
 *
 * Prints a table and writes it to `results/routing.md`. Takes about three minutes.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import OpenAI from "openai";
import { quietPort } from "../chaos/serve-process.ts";
import { createRandom, type Random } from "../support/random.ts";
import type { startService } from "../support/service.ts";
import { REAL_SERVERS, type RealServer } from "./servers.ts";
import { makeModel, startServer } from "./start.ts";

const CONTEXT_LENGTH = 8_192;
const CONVERSATIONS = 6;
const TURNS = 3;
const OUTPUT_TOKENS = 8;
/** Each round plays the same conversations to new servers. */
const ROUNDS = 2;

const { values: flags } = parseArgs({ options: { python: { type: "string" }, before: { type: "string" } } });
const { python, before } = flags;
if (python === undefined || before === undefined) throw new Error("say --python PATH and --before PATH");
const server = REAL_SERVERS["llama-server"] as RealServer;
const folder = mkdtempSync(join(tmpdir(), "tollgate-routing-"));
const program = join(folder, "llama-server");
await Bun.write(program, `#!/bin/sh\nexec ${resolve(python)} ${join(import.meta.dir, "llama_server.py")} "$@"\n`);
chmodSync(program, 0o755);
const version = server.version(program);

interface Seen {
	readonly firstMs: number[];
	promptTokens: number;
	cachedTokens: number;
}

const trees = { before: resolve(before), after: join(import.meta.dir, "../..") };
const seen = { before: nothing(), after: nothing() };
try {
	const file = makeModel("gguf", { folder, python, contextLength: CONTEXT_LENGTH });
	for (let round = 0; round < ROUNDS; round += 1)
		for (const name of ["before", "after"] as const) await play(trees[name], file, round, seen[name]);
} finally {
	rmSync(folder, { recursive: true, force: true });
}

const rows = Object.entries(seen).map(([name, { firstMs, promptTokens, cachedTokens }]) => {
	firstMs.sort((a, b) => a - b);
	const at = (share: number) => ((firstMs[Math.floor(firstMs.length * share)] as number) / 1000).toFixed(2);
	const mean = (firstMs.reduce((sum, ms) => sum + ms, 0) / firstMs.length / 1000).toFixed(2);
	const cached = `${((100 * cachedTokens) / promptTokens).toFixed(1)} % of ${promptTokens.toLocaleString("en")}`;
	return `| ${name} | ${firstMs.length} | ${mean} | ${at(0.5)} | ${at(0.9)} | ${cached} |`;
});
const text = `# Growing conversations before two servers

llama.cpp (xllamacpp ${version}), random weights, ${new Date().toISOString().slice(0, 10)}; Bun ${Bun.version};
load average ${loadavg()[0]?.toFixed(0)} on ${availableParallelism()} cores.
${CONVERSATIONS} conversations of ${TURNS} turns at once, ${ROUNDS} rounds; times to the first token in seconds.

| version | requests | mean | p50 | p90 | cached prompt tokens |
|---|--:|--:|--:|--:|--:|
${rows.join("\n")}
`;
process.stdout.write(text);
await Bun.write(join(import.meta.dir, "results/routing.md"), text);
process.exit(0);

function nothing(): Seen {
	return { firstMs: [], promptTokens: 0, cachedTokens: 0 };
}

/** Starts two servers and the service of `tree`, and plays all conversations. */
async function play(tree: string, file: string, round: number, into: Seen): Promise<void> {
	const places = [0, 1].map(() => ({ program, folder, file, port: quietPort(), contextLength: CONTEXT_LENGTH }));
	const servers = places.map((place) => startServer(server, place));
	try {
		for (const one of servers) await one.answers();
		const module = (await import(join(tree, "test/support/service.ts"))) as { startService: typeof startService };
		const service = await module.startService({ models: catalogOf(places.map(({ port }) => port)) });
		const { secret } = await service.customer();
		const client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: secret, maxRetries: 0 });
		const random = createRandom(round + 1);
		const talks = Array.from({ length: CONVERSATIONS }, () => converse(client, random.fork(), into));
		await Promise.all(talks);
		await service.stop();
	} finally {
		for (const one of servers) await one.end();
	}
}

async function converse(client: OpenAI, random: Random, into: Seen): Promise<void> {
	const letters = (count: number) =>
		Array.from({ length: count }, () => random.pick([..."abcdefghijklmnopqrst"])).join("");
	const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "system", content: letters(200) }];
	for (let turn = 0; turn < TURNS; turn += 1) {
		messages.push({ role: "user", content: letters(turn > 0 ? 400 : random.chance(0.3) ? 3_000 : 1_200) });
		await Bun.sleep(random.between(0, 1_500));
		const sentMs = performance.now();
		const stream = await client.chat.completions.create({
			...{ model: "tiny", messages, temperature: 0, max_tokens: OUTPUT_TOKENS },
			...{ stream: true, stream_options: { include_usage: true } },
		});
		let answer = "";
		let firstMs: number | undefined;
		for await (const { choices, usage } of stream) {
			const content = choices[0]?.delta.content ?? "";
			if (content !== "") firstMs ??= performance.now() - sentMs;
			answer += content;
			into.promptTokens += usage?.prompt_tokens ?? 0;
			into.cachedTokens += usage?.prompt_tokens_details?.cached_tokens ?? 0;
		}
		into.firstMs.push(firstMs ?? performance.now() - sentMs);
		messages.push({ role: "assistant", content: answer });
	}
}

function catalogOf(ports: readonly number[]): string {
	const upstreams = ports.map(
		(port) => `      - { url: "http://127.0.0.1:${port}/v1", model: tiny, dialect: llama.cpp, max_concurrency: 16 }\n`,
	);
	return `  - id: tiny
    kind: chat
    max_output_tokens: 512
    context_length: ${CONTEXT_LENGTH}
    rates: { input: "1", cached_input: "0.5", output: "2" }
    upstreams:
${upstreams.join("")}`;
}
