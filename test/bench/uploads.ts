/**
 * Uploads through the real process beside interactive requests: how long its event loop is held, how much memory it takes,
 * and what the requests feel of it. A file of lines, one endless line, a packed bomb as a body and as a file.
 *
 *     bun run bench:uploads                          200 MB
 *     … --mb 500 --store postgres
 *
 * Prints a Markdown table. Exit code 1 if an upload or the batch of it does not end as it should.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { batchModel, chatLine } from "../batch/batch-service.ts";
import { startLineUpstream } from "../batch/line-upstream.ts";
import type { FleetMember } from "../chaos/fleet.ts";
import { startFleet } from "../chaos/fleet.ts";
import { createTestDatabase } from "../support/database.ts";
import { stopTestPostgres } from "../support/postgres.ts";
import { waitFor } from "../support/wait.ts";

const { values: flags } = parseArgs({
	options: { mb: { type: "string", default: "200" }, store: { type: "string", default: "disk" } },
});
const MB = 1024 * 1024;
const BYTES = Number(flags.mb) * MB;
const BOMB_BYTES = 1024 * MB;
const ANSWER_MS = 20;
const CLIENTS = 4;
const PAUSE_MS = 20;
const ALONE_MS = 8_000;
const LOOK_MS = 50;
/** It goes on holding what it took until it is collected. */
const REST_MS = 3_000;

const folder = mkdtempSync(join(tmpdir(), "tollgate-uploads-"));
const database = await createTestDatabase();
const upstream = startLineUpstream({ answerMs: ANSWER_MS });
const fleet = await startFleet({
	databaseUrl: database.url,
	upstreamUrl: upstream.url,
	instances: 1,
	model: `${batchModel(upstream.url)}\n        max_concurrency: 64`,
	env: { LAG_DIR: folder, FILE_STORE: flags.store },
	preload: join(import.meta.dir, "loop-lag.ts"),
});
const { url, process: running } = fleet.members[0] as FleetMember;
const pid = running()?.pid ?? 0;
const { secret } = await fleet.key(await fleet.account());
const auth = `authorization: Bearer ${secret}`;
let isFine = true;
const rows: string[] = [];
try {
	await measured("nothing", () => Bun.sleep(ALONE_MS));
	const lines = await filled("lines.jsonl", (at) => `${chatLine(`n${at}`, "x".repeat(2_000))}\n`);
	const endless = await filled("endless.jsonl", () => "x".repeat(64 * 1024));
	const bomb = join(folder, "bomb.gz");
	writeFileSync(bomb, gzipSync(Buffer.alloc(BOMB_BYTES), { level: 9 }));
	for (let round = 1; round <= 3; round += 1) {
		await measured(`a file of lines, ${flags.mb} MB (${round})`, () => upload(lines, 200));
	}
	const long = await measured(`one endless line, ${flags.mb} MB`, () => upload(endless, 200));
	await measured("the batch of it", () => batchOf(long, "line_too_long"));
	const packed = await measured("a bomb as a file, 1 GB in 1 MB", () => upload(bomb, 200));
	await measured("the batch of it", () => batchOf(packed, "invalid_json_line"));
	await measured("the bomb as a packed body", () => upload(bomb, 415, ["-H", "content-encoding: gzip"]));
	console.log(`
| upload | seconds | longest hold of the loop ms | p99 of it | MB before | peak | interactive p50 ms | p99 |
|---|--:|--:|--:|--:|--:|--:|--:|
${rows.join("\n")}`);
} finally {
	await fleet.stop();
	await database.drop();
	await upstream.stop();
	await stopTestPostgres();
	rmSync(folder, { recursive: true, force: true });
}
process.exit(isFine ? 0 : 1);

/** What `piece` gives, again and again, until it is as large as was asked for. */
async function filled(name: string, piece: (at: number) => string): Promise<string> {
	const path = join(folder, name);
	const file = openSync(path, "w");
	for (let written = 0, at = 0; written < BYTES; at += 1) written += writeSync(file, piece(at));
	closeSync(file);
	return path;
}

/** By a process of its own, as a stream; the file's id. */
async function upload(path: string, status: number, more: readonly string[] = []): Promise<string> {
	const form = ["-F", "purpose=batch", "-F", `file=@${path}`];
	const child = Bun.spawn(["curl", "-s", "-w", "\n%{http_code}", "-H", auth, ...more, ...form, `${url}/v1/files`]);
	const [body = "", code] = (await new Response(child.stdout).text()).split("\n");
	check(code === String(status), `the upload of ${path} is answered with ${status}: ${code} ${body}`);
	return status === 200 ? (JSON.parse(body).id as string) : "";
}

/** Is to fail for this reason. */
async function batchOf(fileId: string, code: string): Promise<void> {
	const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` };
	const asked = { input_file_id: fileId, endpoint: "/v1/chat/completions", completion_window: "24h" };
	const made = await fetch(`${url}/v1/batches`, { method: "POST", headers, body: JSON.stringify(asked) });
	const { id } = (await made.json()) as { id: string };
	let last = { status: "", errors: { data: [] as { code: string }[] } };
	const isFailed = async () => {
		last = await (await fetch(`${url}/v1/batches/${id}`, { headers })).json();
		return last.status === "failed";
	};
	await waitFor(isFailed, "the batch to fail", 60_000);
	check(last.errors.data[0]?.code === code, `it fails for ${code}: ${JSON.stringify(last.errors)}`);
}

async function measured<T>(what: string, work: () => Promise<T>): Promise<T> {
	await Bun.sleep(REST_MS);
	await lags();
	const before = memory();
	let peak = before;
	let over = false;
	const startedMs = performance.now();
	const mine = work().finally(() => (over = true));
	const watching = (async () => {
		for (; !over; await Bun.sleep(LOOK_MS)) peak = Math.max(peak, memory());
	})();
	const ms: number[] = [];
	await Promise.all([watching, ...Array.from({ length: CLIENTS }, () => ask(ms, () => over))]);
	const result = await mine;
	const seconds = (performance.now() - startedMs) / 1_000;
	const held = (await lags()).toSorted((a, b) => a - b);
	const asked = ms.toSorted((a, b) => a - b);
	const cells = [seconds.toFixed(1), at(held, 1), at(held, 0.99), before, peak, at(asked, 0.5), at(asked, 0.99)];
	rows.push(`| ${[what, ...cells].join(" | ")} |`);
	return result;
}

async function ask(ms: number[], isOver: () => boolean): Promise<void> {
	const body = { model: "test-model", max_tokens: 4, messages: [{ role: "user", content: "interactive" }] };
	const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` };
	for (; !isOver(); await Bun.sleep(PAUSE_MS)) {
		const startedMs = performance.now();
		const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
		await response.text();
		check(response.ok, `an interactive request is answered: ${response.status}`);
		ms.push(performance.now() - startedMs);
	}
}

/** What the loop was late by since the last call. */
async function lags(): Promise<number[]> {
	const path = join(folder, `${pid}.json`);
	rmSync(path, { force: true });
	process.kill(pid, "SIGWINCH");
	await waitFor(() => Bun.file(path).exists(), "the lag to be written", 20_000);
	return JSON.parse(readFileSync(path, "utf8"));
}

function at(sorted: readonly number[], share: number): string {
	return (sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN).toFixed(1);
}

/** Of the gateway, MB resident. */
function memory(): number {
	const status = readFileSync(`/proc/${pid}/status`, "utf8");
	return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}

function check(holds: boolean, what: string): void {
	if (holds) return;
	isFine = false;
	console.error(`does not hold: ${what}`);
}
