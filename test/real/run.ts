/**
 * The service before a real model server: llama-cpp-python with a model of random weights, made on the spot. What its
 * text says is noise; counted are tokens, charges, limits, endings, and what one customer's requests do to another's.
 *
 *     python -m venv real && real/bin/pip install 'llama-cpp-python[server]' gguf     builds for some 12 minutes
 *     bun test/real/run.ts --python real/bin/python
 *
 * Prints a table and writes it to `test/real/results.md`. Exit code 1 if something does not hold. `--quiet` leaves the
 * file alone.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import OpenAI from "openai";
import { startService, type TestService } from "../support/service.ts";
import { REAL_CHECKS, type RealWorld } from "./checks.ts";

const CONTEXT_LENGTH = 4_096;
const START_MS_MAX = 60_000;

const { values: flags } = parseArgs({
	options: { python: { type: "string" }, quiet: { type: "boolean", default: false } },
});
if (flags.python === undefined) {
	process.stderr.write("say which Python has llama-cpp-python: --python PATH\n");
	process.exit(2);
}
const python = flags.python;
const folder = mkdtempSync(join(tmpdir(), "tollgate-real-"));
const cleanup: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let failed = 0;
try {
	const rows: string[] = [];
	const world = await build();
	for (const [name, check] of Object.entries(REAL_CHECKS)) {
		const startedMs = performance.now();
		let seen: string;
		let ok = true;
		try {
			seen = await check(world);
		} catch (error) {
			ok = false;
			failed += 1;
			seen = error instanceof Error ? (error.message.split("\n")[0] as string) : String(error);
		}
		rows.push(`| ${ok ? "holds" : "**broken**"} | ${name} | ${seen.replaceAll("|", "\\|")} |`);
		process.stdout.write(`${rows.at(-1)} ${Math.round(performance.now() - startedMs)} ms\n`);
	}
	const text = [
		"# Before a real model server",
		"",
		`llama-cpp-python ${version("llama_cpp")}, random weights, ${new Date().toISOString().slice(0, 10)}; Bun ${Bun.version}.`,
		"",
		"| | what | seen |",
		"|---|---|---|",
		...rows,
		"",
	].join("\n");
	if (!flags.quiet) await Bun.write(join(import.meta.dir, "results.md"), text);
} finally {
	for (const end of cleanup.reverse()) await end();
}
process.exit(failed === 0 ? 0 : 1);

async function build(): Promise<RealWorld> {
	const model = join(folder, "tiny.gguf");
	const made = Bun.spawnSync([python, join(import.meta.dir, "tiny_gguf.py"), model, String(CONTEXT_LENGTH)]);
	if (made.exitCode !== 0) throw new Error(`the model could not be made: ${made.stderr.toString()}`);
	const port = await freePort();
	const server = Bun.spawn(
		[python, "-m", "llama_cpp.server", "--model", model, "--n_ctx", String(CONTEXT_LENGTH)].concat([
			"--host",
			"127.0.0.1",
			"--port",
			String(port),
			"--n_threads",
			"1",
			"--model_alias",
			"tiny",
		]),
		{ stdout: "ignore", stderr: Bun.file(join(folder, "server.log")) },
	);
	cleanup.push(async () => {
		server.kill("SIGKILL");
		await server.exited;
	});
	const upstreamUrl = `http://127.0.0.1:${port}/v1`;
	const giveUpMs = performance.now() + START_MS_MAX;
	while (!(await answers(`${upstreamUrl}/models`))) {
		if (server.exitCode !== null || performance.now() > giveUpMs)
			throw new Error(`the model server did not start: ${await Bun.file(join(folder, "server.log")).text()}`);
		await Bun.sleep(100);
	}
	const service = await startService({
		models: catalogOf(upstreamUrl),
		limits: "  health_interval_s: 0.5\n  breaker_failures_in_row: 3",
	});
	cleanup.push(() => service.stop());
	return {
		service,
		upstreamUrl,
		direct: new OpenAI({ baseURL: upstreamUrl, apiKey: "none", maxRetries: 0 }),
		async customer() {
			const { accountId, secret } = await (service as TestService).customer();
			return { accountId, secret, client: new OpenAI({ baseURL: `${service.url}/v1`, apiKey: secret, maxRetries: 0 }) };
		},
	};
}

/** The server takes one request at a time and gives a running stream up for the next: one place, and it is waited for. */
function catalogOf(url: string): string {
	return `  - id: tiny
    kind: chat
    modes: [chat, completions]
    context_length: ${CONTEXT_LENGTH}
    max_output_tokens: ${CONTEXT_LENGTH - 512}
    parameters: [temperature, top_p, max_tokens, stop, seed, logprobs, top_logprobs]
    rates: { input: "1", output: "2" }
    upstreams:
      - { url: "${url}", model: tiny, dialect: openai, max_concurrency: 1 }`;
}

async function answers(url: string): Promise<boolean> {
	try {
		return (await fetch(url)).ok;
	} catch {
		return false;
	}
}

async function freePort(): Promise<number> {
	const server = Bun.serve({ port: 0, fetch: () => new Response() });
	const port = server.port as number;
	await server.stop(true);
	return port;
}

function version(module: string): string {
	const script = `import ${module}; print(${module}.__version__)`;
	return Bun.spawnSync([python, "-c", script]).stdout.toString().trim();
}
