/**
 * Five times what the model servers can take, for two minutes, through the real process: what is still answered, what the
 * others hear, whether probes, console and running streams notice, and memory.
 *
 *     bun run bench:overload                 two minutes
 *     … --seconds 20 --times 10
 *
 * Arrivals come by the clock, whatever is answered. Prints a Markdown table. Exit code 1 if less than 80 % of the capacity
 * is served, something else than 200, 429 or 503 with `retry-after` is heard, a probe or page fails, a stream is cut, or
 * the gateway grows by more than 200 MB.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { quietPort, startServe } from "../chaos/serve-process.ts";
import { stopTestPostgres } from "../support/postgres.ts";
import { childrenWithRole } from "../support/processes.ts";
import { chatModel, startService } from "../support/service.ts";
import { reply, startUpstream } from "../support/upstream-server.ts";
import { residentBytes } from "./process-usage.ts";
import { percentile } from "./statistics.ts";

const { values: flags } = parseArgs({
	options: { seconds: { type: "string", default: "120" }, times: { type: "string", default: "5" } },
});
const SECONDS = Number(flags.seconds);
const TIMES = Number(flags.times);
/** Places of the model server, and how long it takes for an answer: its capacity is one by the other. */
const PLACES = 16;
const ANSWER_MS = 50;
const CAPACITY = PLACES / (ANSWER_MS / 1000);
const CUSTOMERS = 8;
const TICK_MS = 10;
const CALM_MS = 10_000;
const MEMORY_MB_MAX = 200;
const SHARE_MIN = 0.8;
const SECRET = "0123456789abcdef".repeat(4);

interface Phase {
	readonly served: number;
	readonly refused: number;
	readonly others: string[];
	readonly seconds: number;
	readonly servedMs: number[];
	readonly refusedMs: number[];
	readonly probeMs: number[];
	readonly pageMs: number[];
}

const upstream = startUpstream({ dialect: "vllm" });
const models = `${chatModel({ url: upstream.url, dialect: "vllm" })}\n        max_concurrency: ${PLACES}
${chatModel({ id: "steady", url: upstream.url, dialect: "vllm" })}`;
const limits = "  queue_length: 64\n  queue_wait_s: 2";
const service = await startService({ models, limits, env: { KEY_PEPPER: SECRET } });
const keys = await Promise.all(Array.from({ length: CUSTOMERS }, async () => (await service.customer()).secret));
const folder = mkdtempSync(join(tmpdir(), "tollgate-overload-"));
writeFileSync(join(folder, "tollgate.yaml"), `models:\n${models}\nlimits:\n${limits}\n`);
const served = await startServe(
	{
		ROLE: "all",
		PORT: String(quietPort()),
		DATABASE_URL: service.db.url,
		DATA_DIR: join(folder, "data"),
		CONFIG: join(folder, "tollgate.yaml"),
		KEY_PEPPER: SECRET,
		CONSOLE_SECRET: SECRET,
		DRAIN_S: "2",
	},
	{ ready: "all processes are ready" },
);
const gatewayMb = () => residentBytes(childrenWithRole(served.pid, "gateway")) / 1024 / 1024;

const post = (key: string, model: string, stream: boolean) =>
	fetch(`${served.url}/v1/chat/completions`, {
		method: "POST",
		headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
		body: JSON.stringify({ model, stream, max_tokens: 16, messages: [{ role: "user", content: "one two" }] }),
	});

/** `perSecond` requests for so long, and what became of them. */
async function load(perSecond: number, durationMs: number): Promise<Phase> {
	const phase: Phase = {
		served: 0,
		refused: 0,
		others: [],
		seconds: durationMs / 1000,
		servedMs: [],
		refusedMs: [],
		probeMs: [],
		pageMs: [],
	};
	const counts = phase as { served: number; refused: number };
	const timed = async (path: string, into: number[]) => {
		const sinceMs = performance.now();
		const response = await fetch(served.url + path);
		await response.text();
		if (response.status === 200) into.push(performance.now() - sinceMs);
		else phase.others.push(`${path}: ${response.status}`);
	};
	const one = async (nth: number) => {
		const sinceMs = performance.now();
		const response = await post(keys[nth % CUSTOMERS] ?? "", "test-model", false);
		await response.text();
		const ms = performance.now() - sinceMs;
		const isRefused = [429, 503].includes(response.status) && response.headers.get("retry-after") !== null;
		if (response.status === 200) {
			counts.served += 1;
			phase.servedMs.push(ms);
		} else if (isRefused) {
			counts.refused += 1;
			phase.refusedMs.push(ms);
		} else phase.others.push(`chat: ${response.status}`);
	};
	const failed = (error: unknown) => void phase.others.push(String(error));
	const open = new Set<Promise<void>>();
	const begin = (work: Promise<void>) => {
		const tracked = work.catch(failed).finally(() => open.delete(tracked));
		open.add(tracked);
	};
	const beganMs = performance.now();
	let sent = 0;
	for (let tick = 0; ; tick += 1) {
		const elapsedMs = performance.now() - beganMs;
		if (elapsedMs >= durationMs) break;
		for (const due = (elapsedMs / 1000) * perSecond; sent < due; sent += 1) begin(one(sent));
		if (tick % 5 === 0) begin(timed("/livez", phase.probeMs));
		if (tick % 50 === 0) begin(timed("/api/console/public/models", phase.pageMs));
		await Bun.sleep(TICK_MS);
	}
	await Promise.all(open);
	return phase;
}

let isFine = true;
try {
	for (const key of keys) await (await post(key, "steady", false)).text();
	const released = Promise.withResolvers<void>();
	upstream.next(reply().text(["a", "b", "c"]).pauseAfter(1, released.promise));
	const stream = await post(keys[0] ?? "", "steady", true);
	upstream.always(() => reply().text("fine").delay(ANSWER_MS));
	// Warm, and then as much as there is capacity for.
	await load(CAPACITY, 3_000);
	const calm = await load(CAPACITY * 0.95, CALM_MS);
	const beforeMb = gatewayMb();
	const crowded = await load(CAPACITY * TIMES, SECONDS * 1000);
	const afterMb = gatewayMb();
	released.resolve();
	const streamed = await stream.text();

	const ms = (list: number[], share: number) => percentile(Float64Array.from(list), share).toFixed(1);
	const row = (name: string, of: (phase: Phase) => string) => `| ${name} | ${of(calm)} | ${of(crowded)} |`;
	console.log(`| | ${0.95} × capacity | ${TIMES} × capacity |\n|---|--:|--:|`);
	console.log(row("served a second", ({ served: count, seconds }) => (count / seconds).toFixed(0)));
	console.log(row("refused a second", ({ refused, seconds }) => (refused / seconds).toFixed(0)));
	console.log(row("served, p50 / p99 ms", ({ servedMs }) => `${ms(servedMs, 0.5)} / ${ms(servedMs, 0.99)}`));
	console.log(
		row("refused, p50 / p99 ms", ({ refusedMs }) =>
			refusedMs.length === 0 ? "–" : `${ms(refusedMs, 0.5)} / ${ms(refusedMs, 0.99)}`,
		),
	);
	console.log(row("`/livez`, p50 / p99 ms", ({ probeMs }) => `${ms(probeMs, 0.5)} / ${ms(probeMs, 0.99)}`));
	console.log(row("a page, p50 / p99 ms", ({ pageMs }) => `${ms(pageMs, 0.5)} / ${ms(pageMs, 0.99)}`));
	console.log(row("anything else", ({ others }) => String(others.length)));
	console.log(`\nGateway: ${beforeMb.toFixed(0)} MB before, ${afterMb.toFixed(0)} MB after ${SECONDS} s.`);

	const share = crowded.served / crowded.seconds / (calm.served / calm.seconds);
	const claims: readonly [string, boolean][] = [
		[`${(share * 100).toFixed(0)} % of what was served before`, share >= SHARE_MIN],
		[
			`nothing but answers and refusals: ${[...new Set(crowded.others)].slice(0, 5).join("; ")}`,
			crowded.others.length === 0,
		],
		["a stream that was open goes on to its end", streamed.includes("[DONE]")],
		[`memory bounded`, afterMb - beforeMb < MEMORY_MB_MAX],
		["nobody died", served.lines.every((line) => !line.message.startsWith("a process died"))],
	];
	for (const [claim, holds] of claims) console.log(`${holds ? "ok  " : "NOT "} ${claim}`);
	isFine = claims.every(([, holds]) => holds);
} finally {
	served.kill("SIGTERM");
	await served.exited;
	await service.stop();
	await upstream.stop();
	await stopTestPostgres();
	rmSync(folder, { recursive: true, force: true });
}
process.exit(isFine ? 0 : 1);
