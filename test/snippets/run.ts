/**
 * Runs the pages' instructions with every available tool, each from its registry at a pinned version and in an empty
 * home, and writes `results.md`:
 *
 *   bun run snippets              all: some minutes and gigabytes
 *   bun run snippets -- WORD…     only ids that contain a word; other rows stay
 *
 * Exit code 1 if a tool did not print the streamed answer or was not charged exactly once.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PackageStep, packageLine, TOOLS, type Tool } from "../../src/web/snippets/tools.ts";
import { startService } from "../support/service.ts";
import { startUpstream } from "../support/upstream-server.ts";
import { ANSWER, catalogue, factsFor, isChargedOnce, saidBy } from "./customer.ts";
import { playTool } from "./play-tool.ts";
import { type Row, readRows, SUCCESS_RESULT, writeRows } from "./results.ts";
import { TRIALS, type Trial } from "./trials.ts";

/** Longest run of a tool; Open WebUI alone downloads 7 GB. */
const TIMEOUT_MS = 2_700_000;
/** Environment variables that the machine's package clients need; no others are passed on. */
const OF_CLIENTS =
	/^(PIP_|npm_config_|GO|PYENV_|JAVA_HOME|MAVEN_|SSL_CERT|REQUESTS_CA|NODE_EXTRA_CA|CURL_CA|https?_proxy|no_proxy)/i;
const CLIENTS = Object.fromEntries(Object.entries(Bun.env).filter(([name]) => OF_CLIENTS.test(name)));

const words = process.argv.slice(2);
const chosen = TOOLS.filter(({ id }) => words.length === 0 || words.some((word) => id.includes(word)));
const rows = readRows();
const upstream = startUpstream({ dialect: "vllm" });
const service = await startService({ models: catalogue(upstream) });
let failed = 0;
try {
	for (const tool of chosen) {
		const trial = TRIALS[tool.id];
		if (trial === undefined) throw new Error(`nobody says how ${tool.id} is tried`);
		const outcome = trial.notTried ?? (await problemOf(tool, trial)) ?? SUCCESS_RESULT;
		const isFine = trial.notTried !== undefined || outcome === SUCCESS_RESULT;
		if (!isFine) failed += 1;
		rows.set(tool.id, rowOf(tool, trial, outcome));
		writeRows(rows);
		console.log(`${tool.id.padEnd(22)} ${outcome}`);
	}
} finally {
	await service.stop();
	await upstream.stop();
}
process.exit(failed === 0 ? 0 : 1);

async function problemOf(tool: Tool, trial: Trial): Promise<string | undefined> {
	const folder = mkdtempSync(join(tmpdir(), `tollgate-${tool.id}-`));
	try {
		const { accountId, secret } = await service.customer();
		const outcome = await playTool(tool, factsFor(service, secret), {
			folder,
			...trial,
			install: (step) => packageLine(step, (name) => pinned(step, name, trial)),
			env: { ...CLIENTS, ...trial.env },
			timeoutMs: TIMEOUT_MS,
		});
		const said = saidBy(tool, outcome);
		const isCharged = await isChargedOnce(service, accountId);
		if (outcome.code === 0 && said === ANSWER && isCharged) return;
		console.error(outcome.out.slice(-2_000), outcome.err.slice(-3_000), JSON.stringify(await service.usage(accountId)));
		if (outcome.code !== 0) return `failed: exit code ${outcome.code}`;
		return said === ANSWER ? "failed: not charged once" : "failed: no answer";
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

function pinned({ by }: PackageStep, name: string, { versions }: Trial): string {
	const version = versions[name];
	if (version === undefined) throw new Error(`no version of ${name} is pinned`);
	return `${name}${by === "pip" ? "==" : "@"}${version}`;
}

function rowOf({ id }: Tool, { versions, way }: Trial, outcome: string): Row {
	const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
	return [id, named.join(", ") || "–", way, new Date().toISOString().slice(0, 10), outcome];
}
