/**
 * A batch of many short lines through the real process: lines a second, memory, and what interactive requests feel of it;
 * with `--kills` the gateway is killed in between, and the model server's own count is compared with the files.
 *
 *     bun run bench:batch                            50,000 lines
 *     … --lines 4000 --kills 5                       SIGKILL five times, each at another part of it
 *     … --lines 4000 --outage-s 10                   Postgres is away for so long, once half of it is done
 *
 * Prints a Markdown table. Exit code 1 if a line was carried out twice, was charged and is missing, or has no outcome.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { batchesOf, batchModel, chatLine, isOver } from "../batch/batch-service.ts";
import { startLineUpstream } from "../batch/line-upstream.ts";
import { stopTestPostgres } from "../support/postgres.ts";
import { childrenWithRole } from "../support/processes.ts";
import { startService } from "../support/service.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait.ts";

const { values: flags } = parseArgs({
	options: {
		lines: { type: "string", default: "50000" },
		kills: { type: "string", default: "0" },
		"outage-s": { type: "string", default: "0" },
		"answer-ms": { type: "string", default: "20" },
	},
});
const LINES = Number(flags.lines);
const KILLS = Number(flags.kills);
const OUTAGE_S = Number(flags["outage-s"]);
const SECRET = "0123456789abcdef".repeat(4);
const CLIENTS = 4;
const PAUSE_MS = 20;
const ALONE_MS = 8_000;

const killedAtMs: number[] = [];
const upstream = startLineUpstream({ answerMs: Number(flags["answer-ms"]) });
const folder = mkdtempSync(join(tmpdir(), "tollgate-batches-"));
const models = `${batchModel(upstream.url)}\n        max_concurrency: 64`;
const service = await startService({ models, env: { KEY_PEPPER: SECRET } });
const { secret, accountId } = await service.customer();
const database = new URL(service.db.url);
const proxy = startTcpProxy({ hostname: database.hostname, port: Number(database.port) });
if (OUTAGE_S > 0) database.port = String(proxy.port);
const config = join(folder, "tollgate.yaml");
writeFileSync(config, `models:\n${models}\n`);
const port = Bun.listen({ port: 0, hostname: "127.0.0.1", socket: { data() {} } });
const freePort = port.port;
port.stop(true);
const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/main.ts"), "serve"], {
	cwd: folder,
	env: {
		PATH: Bun.env.PATH ?? "",
		HOME: folder,
		PORT: String(freePort),
		DATABASE_URL: database.href,
		DATA_DIR: join(folder, "data"),
		CONFIG: config,
		KEY_PEPPER: SECRET,
		CONSOLE_SECRET: SECRET,
		DRAIN_S: "2",
	},
	stdout: Bun.file(join(folder, "log")),
	stderr: Bun.file(join(folder, "log")),
});
const url = `http://127.0.0.1:${freePort}`;
const gateway = () => childrenWithRole(child.pid, "gateway")[0];
let isFine = true;
try {
	const ready = async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok ?? false;
	await waitFor(ready, "the service", 60_000);
	// The other instance lends its database and its makers of customers, and runs nothing.
	await service.app.stop();
	const batches = batchesOf({ ...service, url, post, get } as typeof service, undefined as never);
	const alone = await interactive(Bun.sleep(ALONE_MS));
	const input = Array.from({ length: LINES }, (_, at) => chatLine(`n${at}`, `line ${at}`));
	const fileId = await batches.upload(secret, input);
	const before = memory();
	let peak = 0;
	const startedMs = performance.now();
	const { id } = await batches.create(secret, fileId);
	const done = follow(id);
	const beside = await interactive(done);
	const batch = await done;
	const seconds = (performance.now() - startedMs) / 1_000;
	const output = await batches.lines(secret, batch.output_file_id);
	const error = await batches.lines(secret, batch.error_file_id);
	check(batch.status === "completed", `it is ${batch.status}`);
	check(killedAtMs.length === KILLS, `it was killed as often as asked: ${killedAtMs.length}`);
	const named = new Map([...output, ...error].map((line) => [line.custom_id, line]));
	check(named.size === LINES && output.length + error.length === LINES, "every line has one outcome");
	const twice = [...upstream.executed].filter(([text, times]) => text.startsWith("line ") && times > 1);
	check(twice.length === 0, `no line is carried out twice: ${twice.length}`);
	check(
		error.every((line) => line.error?.code === "batch_line_interrupted"),
		"errors are interruptions",
	);
	const interrupted = { unsent: 0, underWay: 0, answered: 0 };
	for (const { custom_id } of error) {
		const times = upstream.times(`line ${custom_id.slice(1)}`);
		const isCut = killedAtMs.some((atMs) => times !== undefined && times.fromMs <= atMs && atMs <= times.untilMs);
		interrupted[times === undefined ? "unsent" : isCut ? "underWay" : "answered"] += 1;
	}
	await Bun.sleep(1_000);
	const [charged] = await service.db.sql`
		select count(*) filter (where charged_nano_usd > 0)::int as lines, count(distinct request_id)::int as requests
		from usage_event where account_id = ${accountId} and batch_id = ${id}`;
	const lines = Number(charged?.lines);
	check(lines >= output.length && lines <= output.length + error.length, `as many are charged: ${lines}`);
	console.log(`
| lines | kills | Postgres away s | seconds | lines/s | answered | interrupted | of them never sent | under way | answered | charged | gateway MB before | peak |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| ${LINES} | ${killedAtMs.length} | ${OUTAGE_S} | ${seconds.toFixed(1)} | ${(LINES / seconds).toFixed(0)} | ${output.length} | ${error.length} | ${interrupted.unsent} | ${interrupted.underWay} | ${interrupted.answered} | ${lines} | ${before} | ${peak} |

| interactive requests | count | failed | p50 ms | p99 ms |
|---|--:|--:|--:|--:|
| alone | ${row(alone)} |
| beside the batch | ${row(beside)} |`);

	async function follow(batchId: string) {
		const killAt = Array.from({ length: KILLS }, (_, at) => Math.floor(((at + 1) * LINES) / (KILLS + 1)));
		let wasAway = false;
		for (;;) {
			const now = await batches.get(secret, batchId).catch(() => undefined);
			peak = Math.max(peak, memory());
			if (now !== undefined && isOver(now)) return now;
			const next = killAt[0];
			const pid = gateway();
			const over = upstream.executed.size;
			if (next !== undefined && over >= next && pid !== undefined) {
				killAt.shift();
				process.kill(pid, "SIGKILL");
				killedAtMs.push(performance.now());
				console.error(`killed at ${over} lines`);
			}
			if (!wasAway && OUTAGE_S > 0 && over >= LINES / 2) {
				wasAway = true;
				console.error(`Postgres goes away at ${over} lines`);
				proxy.cut();
				await Bun.sleep(OUTAGE_S * 1_000);
				proxy.restore();
			}
			await Bun.sleep(50);
		}
	}
} finally {
	child.kill();
	await child.exited;
	await service.db.drop();
	await upstream.stop();
	proxy.stop();
	await stopTestPostgres();
	rmSync(folder, { recursive: true, force: true });
}
process.exit(isFine ? 0 : 1);

function check(holds: boolean, what: string): void {
	if (holds) return;
	isFine = false;
	console.error(`does not hold: ${what}`);
}

/** Latencies of clients that ask, wait a little and ask again, until this resolves. */
async function interactive(until: Promise<unknown>) {
	const ms: number[] = [];
	let failed = 0;
	let over = false;
	void until.finally(() => (over = true));
	const body = { model: "test-model", max_tokens: 4, messages: [{ role: "user", content: "interactive" }] };
	const client = async () => {
		while (!over) {
			const startedMs = performance.now();
			const response = await post("/v1/chat/completions", secret, body).catch(() => undefined);
			if (response?.status === 200) {
				await response.text();
				ms.push(performance.now() - startedMs);
			} else failed += 1;
			await Bun.sleep(PAUSE_MS);
		}
	};
	await Promise.all(Array.from({ length: CLIENTS }, client));
	return { ms: ms.toSorted((a, b) => a - b), failed };
}

function row({ ms, failed }: { ms: readonly number[]; failed: number }): string {
	const at = (share: number) => (ms[Math.floor(share * (ms.length - 1))] ?? Number.NaN).toFixed(1);
	return `${ms.length} | ${failed} | ${at(0.5)} | ${at(0.99)}`;
}

/** Of the gateway, MB resident. */
function memory(): number {
	const pid = gateway();
	if (pid === undefined) return 0;
	try {
		const status = readFileSync(`/proc/${pid}/status`, "utf8");
		return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
	} catch {
		return 0;
	}
}

function post(path: string, key: string | undefined, body: unknown): Promise<Response> {
	const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
	return fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

function get(path: string, key?: string): Promise<Response> {
	return fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
}
