/**
 * Counts the cost of a small request, of a stream's event and of an open stream, for the service and the bare
 * pass-through. Replaces `results/counts.md`.
 *
 *     bun run bench:counts
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Counts, LiveCounts } from "./counts.ts";
import { collected, counted, countedRun, leastOf, openStreamCounts } from "./counts.ts";
import { STREAM_EVENTS, startFastUpstream } from "./fast-upstream.ts";
import type { Gateway } from "./gateways.ts";
import { startPortPrinter } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { startBenchPostgres, startProduct } from "./product.ts";
import { chatBody, SMALL_PROMPT_BYTES, streamBody } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";

const DEADLINE_MS = 120_000;
const WINDOWS = 3;
const KINDS = ["Function", "JSLexicalEnvironment", "Promise", "string"];
const CALLS_AT = [1, 16, 64];
const OPEN_STREAMS = 400;
const IDLE = streamBody("idle");
const WORK = [
	{ name: "small request", body: chatBody("plain", SMALL_PROMPT_BYTES), per: 1, warmUp: 2_000, requests: 2_000 },
	{ name: "event", body: streamBody("stream"), per: STREAM_EVENTS, warmUp: 64, requests: 64 },
] as const;

const folder = mkdtempSync(join(tmpdir(), "tollgate-counts-"));
// Postgres runs as its own user, who must reach its directory.
chmodSync(folder, 0o755);
const upstream = startFastUpstream();
const postgres = await startBenchPostgres(join(folder, "postgres"));
const database = await postgres.database("counts");
const { secrets } = await database.customer(8);
const rows: string[] = [];
const callRows: string[] = [];
const openRows: string[] = [];
try {
	for (const [name, start] of Object.entries({ service: startService, "bare Bun": startBareCounted })) {
		const how = counted(folder, name);
		const gateway = await start(how);
		for (const work of WORK) rows.push(rowOf(`${work.name}, ${name}`, await measure(gateway, how, work), work.per));
		callRows.push(`| ${name} | ${(await callsAt(gateway, how)).join(" | ")} |`);
		await gateway.stop();
		const liveHow = collected(folder, `${name}, live`);
		const live = await start(liveHow);
		const request = (stream: number) => chatRequestBytes(live, secrets[stream % secrets.length] as string, IDLE);
		const held = await openStreamCounts(live, liveHow, OPEN_STREAMS, request, () => upstream.release());
		openRows.push(liveRowOf(name, held));
		await live.stop();
	}
} finally {
	await database.close();
	await postgres.stop();
	upstream.stop();
	rmSync(folder, { recursive: true, force: true });
}

const table = (titles: readonly string[], lines: readonly string[]) =>
	`| ${titles.join(" | ")} |\n|---|${"--:|".repeat(titles.length - 1)}\n${lines.join("\n")}\n`;
const text = `# Counts

\`bun run bench:counts\`, ${new Date().toISOString().slice(0, 10)}, Bun ${Bun.version}. What a small request and an event of a
stream allocate, write and wait, and what an open stream holds. \`counts.test.ts\` limits the service's figures.

${table(["", "objects", "bytes", ...KINDS, "writes", "sleeps"], rows)}
${table(["`write` calls at", ...CALLS_AT.map((connections) => `${connections} connections`)], callRows)}
${table(["open stream", "objects", "bytes", ...KINDS], openRows)}`;
process.stdout.write(text);
await Bun.write(join(import.meta.dir, "results/counts.md"), text);
process.exit(0);

function startService({ flags, env }: ReturnType<typeof counted>): Promise<Gateway> {
	return startProduct({
		command: [process.execPath, ...flags, join(import.meta.dir, "../../src/main.ts")],
		databaseUrl: database.url,
		upstreamPort: upstream.port,
		folder: join(folder, "service"),
		pinned: false,
		env,
	});
}

function startBareCounted({ flags, env }: ReturnType<typeof counted>): Promise<Gateway> {
	const argv = [process.execPath, ...flags, join(import.meta.dir, "bare-pass-through.ts")];
	const more = { UPSTREAM: `http://127.0.0.1:${upstream.port}/v1`, KEYS: secrets.join(","), READS: "1" };
	return startPortPrinter("bare Bun", argv, { NODE_ENV: "production", ...more, ...env });
}

async function measure(
	gateway: Gateway,
	how: ReturnType<typeof counted>,
	{ body, warmUp, requests }: { body: string; warmUp: number; requests: number },
	connections = 32,
): Promise<Counts> {
	const bytes = secrets.map((secret) => chatRequestBytes(gateway, secret, body));
	const request = (connection: number) => bytes[connection % bytes.length] as Uint8Array;
	const load = { port: gateway.port, connections, request, durationMs: DEADLINE_MS };
	await runLoad({ ...load, requestsMax: warmUp });
	const windows: Counts[] = [];
	for (let window = 0; window < WINDOWS; window++)
		windows.push(await countedRun(gateway, how, { ...load, requestsMax: requests }));
	return leastOf(windows);
}

async function callsAt(gateway: Gateway, how: ReturnType<typeof counted>): Promise<string[]> {
	const calls: string[] = [];
	const { body } = WORK[0];
	for (const connections of CALLS_AT) {
		const { writes } = await measure(gateway, how, { body, warmUp: connections, requests: 1_000 }, connections);
		calls.push(writes.toFixed(2));
	}
	return calls;
}

function liveRowOf(name: string, { objects, bytes, byKind }: LiveCounts): string {
	const each = [objects, ...KINDS.map((kind) => byKind[kind] ?? 0)].map((count) => count.toFixed(1));
	return `| ${name} | ${each.toSpliced(1, 0, bytes.toFixed(0)).join(" | ")} |`;
}

function rowOf(name: string, { objects, bytes, byKind, writes, sleeps }: Counts, per: number): string {
	const each = [objects, bytes, ...KINDS.map((kind) => byKind[kind] ?? 0), writes, sleeps];
	return `| ${name} | ${each.map((count) => (count / per).toFixed(count / per < 100 ? 1 : 0)).join(" | ")} |`;
}
