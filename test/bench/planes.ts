/**
 * What inference feels of the console: the latency of small chats and the lag of the event loop that serves them, while
 * nobody is there, and while a customer takes a million requests as a file. Also how long the whole takes to start, and
 * what memory its processes take together, without PostgreSQL.
 *
 *     bun run bench:planes                           from source, a million rows: about four minutes
 *     … --rows 100000 --seconds 10                   quicker
 *     … --main other/checkout/src/main.ts            another version of the service
 *     … --binary dist/tollgate                       the binary, without the lag of its loop
 *
 * Load, model server and reader of the file are processes of their own. Prints a Markdown table.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { operator, PASSWORD, PERSON_ENV, signedUp, topUp } from "../console/person.ts";
import { writeUsage } from "../console/usage-rows.ts";
import { stopTestPostgres } from "../support/postgres.ts";
import type { TestService } from "../support/service.ts";
import { chatModel, startService } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";

const { values: flags } = parseArgs({
	options: {
		rows: { type: "string", default: "1000000" },
		seconds: { type: "string", default: "30" },
		main: { type: "string", default: join(import.meta.dir, "../../src/main.ts") },
		binary: { type: "string" },
	},
});
const SECRET = "0123456789abcdef".repeat(4);
const CLIENTS = 4;
const PAUSE_MS = 10;
const ADDRESS = "10.9.9.9";

const folder = mkdtempSync(join(tmpdir(), "tollgate-planes-"));
const say = (line: string) => console.error(line);

interface Latencies {
	readonly ms: readonly number[];
	readonly failed: number;
}

async function main(): Promise<void> {
	const upstream = await startUpstreamProcess();
	const filled = await fill(upstream.url, Number(flags.rows));
	try {
		const served = await serve(filled);
		try {
			const lines = [
				"| | requests | failed | p50 ms | p99 ms | p99.9 ms | longest ms | loop lag p99 ms | loop lag longest ms |",
				"|---|--:|--:|--:|--:|--:|--:|--:|--:|",
			];
			await load(served, filled, 3);
			for (const name of ["nobody there", "a file is taken"]) {
				await served.lags();
				const reader = name === "nobody there" ? undefined : takeFile(served.url, filled.cookie);
				const { ms, failed } = await load(served, filled, Number(flags.seconds));
				const lags = await served.lags();
				reader?.stop();
				lines.push(
					`| ${name} | ${ms.length} | ${failed} | ${[0.5, 0.99, 0.999, 1].map((share) => at(ms, share)).join(" | ")} | ${at(lags, 0.99)} | ${at(lags, 1)} |`,
				);
			}
			console.log(`\n${served.about}\n\n${lines.join("\n")}`);
		} finally {
			await served.stop();
		}
	} finally {
		await filled.service.stop();
		upstream.stop();
		await stopTestPostgres();
		rmSync(folder, { recursive: true, force: true });
	}
}

function at(values: readonly number[], share: number): string {
	const sorted = values.toSorted((a, b) => a - b);
	return (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN).toFixed(1);
}

interface Filled {
	readonly service: TestService;
	readonly catalog: string;
	readonly secret: string;
	readonly email: string;
	cookie: string;
}

async function fill(upstreamUrl: string, rows: number): Promise<Filled> {
	say(`writing ${rows.toLocaleString("en-US")} rows`);
	const models = `${chatModel({ url: upstreamUrl, dialect: "vllm" })}\n        max_concurrency: 512`;
	const service = await startService({ models, env: { ...PERSON_ENV, KEY_PEPPER: SECRET, CONSOLE_SECRET: SECRET } });
	const [boss, customer] = [await operator(service), await signedUp(service)];
	await topUp(customer, boss, "1000");
	const made = (await customer.send("POST", "/api/console/keys", { name: "bench" })).body;
	const { accountId, email } = customer;
	await writeUsage(service.db, { accountId, keyIds: [made.key.id], rows, days: 60, models: 4 });
	await service.db.sql`analyze`;
	return { service, catalog: `models:\n${models}\n`, secret: made.secret, email, cookie: "" };
}

async function serve(filled: Filled) {
	const config = join(folder, "tollgate.yaml");
	writeFileSync(config, filled.catalog);
	const port = freePort();
	const command =
		flags.binary === undefined
			? [process.execPath, "--preload", join(import.meta.dir, "loop-lag.ts"), flags.main]
			: [flags.binary];
	const startedAtMs = performance.now();
	const log = Bun.file(join(folder, "service.log"));
	const child = Bun.spawn([...command, "serve"], {
		cwd: folder,
		env: {
			PATH: Bun.env.PATH ?? "",
			HOME: folder,
			...PERSON_ENV,
			PORT: String(port),
			DATABASE_URL: filled.service.db.url,
			DATA_DIR: join(folder, "data"),
			CONFIG: config,
			KEY_PEPPER: SECRET,
			CONSOLE_SECRET: SECRET,
			LAG_DIR: folder,
			DRAIN_S: "2",
		},
		stdout: log,
		stderr: log,
	});
	const url = `http://127.0.0.1:${port}`;
	const answers = async (path: string) => (await fetch(`${url}${path}`).catch(() => undefined))?.ok ?? false;
	await waitFor(() => answers("/readyz"), "the service to be ready", 60_000);
	const readyMs = performance.now() - startedAtMs;
	await waitFor(() => answers("/api/console/public/config"), "the console", 60_000);
	const peopleMs = performance.now() - startedAtMs;
	filled.cookie = await signIn(url, filled.email);
	const idle = memoryOf(child.pid);
	await fetch(`${url}/overview`);
	const withPages = memoryOf(child.pid);
	const about = `/readyz after ${readyMs.toFixed(0)} ms, the console after ${peopleMs.toFixed(0)} ms. Memory of all ${idle.processes} processes together: ${idle.text}; after the pages were asked for: ${withPages.text}.`;
	return {
		url,
		about,
		/** What the loop that serves inference was late by since the last call. */
		async lags(): Promise<number[]> {
			if (flags.binary !== undefined) return [];
			const pid = gatewayOf(child.pid);
			const path = join(folder, `${pid}.json`);
			rmSync(path, { force: true });
			process.kill(pid, "SIGWINCH");
			await waitFor(() => Bun.file(path).exists(), "the lag to be written", 20_000);
			return JSON.parse(readFileSync(path, "utf8"));
		},
		async stop() {
			child.kill();
			await child.exited;
			const errors = readFileSync(join(folder, "service.log"), "utf8")
				.split("\n")
				.filter((line) => line.includes('"level":"error"') || line.includes('"level":"warn"'));
			for (const line of errors.slice(0, 10)) say(line);
		},
	};
}

async function signIn(url: string, email: string): Promise<string> {
	const response = await fetch(`${url}/api/auth/sign-in/email`, {
		method: "POST",
		headers: { origin: url, "content-type": "application/json", "x-forwarded-for": ADDRESS },
		body: JSON.stringify({ email, password: PASSWORD }),
	});
	if (!response.ok) throw new Error(`sign-in: ${response.status} ${await response.text()}`);
	return response.headers
		.getSetCookie()
		.map((line) => line.split(";")[0])
		.join("; ");
}

/** As fast as it comes, again and again until it is stopped. */
function takeFile(url: string, cookie: string): { stop(): void } {
	let stopped = false;
	let child: Bun.Subprocess | undefined;
	void (async () => {
		while (!stopped) {
			const argv = ["curl", "-sS", "-o", "/dev/null", "-H", `cookie: ${cookie}`];
			child = Bun.spawn([...argv, `${url}/api/console/requests.csv?from=0`], { stdout: "ignore", stderr: "inherit" });
			await child.exited;
		}
	})();
	return {
		stop() {
			stopped = true;
			child?.kill();
		},
	};
}

/** Clients that ask, wait a little and ask again, in a process of their own. */
async function load(served: { url: string }, filled: Filled, seconds: number): Promise<Latencies> {
	const script = `
		const { url, secret, clients, pauseMs, seconds } = ${JSON.stringify({ url: served.url, secret: filled.secret, clients: CLIENTS, pauseMs: PAUSE_MS, seconds })};
		const ms = []; let failed = 0; const endMs = performance.now() + seconds * 1000;
		const body = JSON.stringify({ model: "test-model", messages: [{ role: "user", content: "one two three" }] });
		await Promise.all(Array.from({ length: clients }, async () => {
			while (performance.now() < endMs) {
				const from = performance.now();
				try {
					const r = await fetch(url + "/v1/chat/completions", { method: "POST", body, headers: { authorization: "Bearer " + secret, "content-type": "application/json" } });
					await r.text(); if (r.status === 200) ms.push(performance.now() - from); else failed++;
				} catch { failed++; }
				await Bun.sleep(pauseMs);
			}
		}));
		console.log(JSON.stringify({ ms, failed }));`;
	const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
	return JSON.parse(await new Response(child.stdout).text());
}

async function startUpstreamProcess(): Promise<{ url: string; stop(): void }> {
	const path = join(import.meta.dir, "../support/upstream-process.ts");
	const child = Bun.spawn([process.execPath, path, "--dialect", "vllm"], { stdout: "pipe", stderr: "inherit" });
	const reader = child.stdout.getReader();
	const { value } = await reader.read();
	reader.releaseLock();
	return { url: JSON.parse(new TextDecoder().decode(value)).url, stop: () => child.kill() };
}

/** A process and its descendants. */
function family(pid: number): number[] {
	const parents = new Map<number, number>();
	for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
		try {
			const fields = readFileSync(`/proc/${name}/stat`, "utf8").split(") ").pop()?.split(" ") ?? [];
			parents.set(Number(name), Number(fields[1]));
		} catch {
			// It has just ended.
		}
	}
	const found = [pid];
	for (const one of found) for (const [child, parent] of parents) if (parent === one) found.push(child);
	return found;
}

/** The one process, or the one among them that is a gateway. */
function gatewayOf(pid: number): number {
	const isGateway = (one: number) => readFileSync(`/proc/${one}/environ`, "utf8").split("\0").includes("ROLE=gateway");
	return family(pid).find(isGateway) ?? pid;
}

function memoryOf(pid: number): { processes: number; text: string } {
	const all = family(pid);
	const of = (one: number, what: string) => {
		const text = readFileSync(`/proc/${one}/smaps_rollup`, "utf8");
		return Number(new RegExp(`^${what}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0) / 1024;
	};
	const list = (what: string) => {
		const each = all.map((one) => of(one, what));
		const sum = each.reduce((total, one) => total + one, 0);
		return `${sum.toFixed(0)} MB (${each.map((one) => one.toFixed(0)).join(" + ")})`;
	};
	return {
		processes: all.length,
		text: `${list("Pss")}, with the pages that they share counted by each ${list("Rss")}`,
	};
}

function freePort(): number {
	const socket = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
	const { port } = socket;
	socket.stop(true);
	return port;
}

await main();
process.exit(0);
