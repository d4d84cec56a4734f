/**
 * The console in a browser with a million requests in the log: how long each page takes until its figures are drawn.
 *
 *     bun test/browser/million.ts                  the compiled binary, a million rows over 90 days: about three minutes
 *     … --source                                   the source instead of the binary
 *     … --rows 100000                              fewer rows
 *
 * The service is a process of its own beside a Postgres with the rows; Chromium signs in through the form. Prints a
 * Markdown table. Exit code 1 if a page takes longer than its limit.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Browser } from "playwright-core";
import type { Person } from "../console/person.ts";
import { operator, PASSWORD, PERSON_ENV, signedUp, topUp } from "../console/person.ts";
import { writeUsage } from "../console/usage-rows.ts";
import { buildBinary } from "../packaging/build-binary.ts";
import { stopTestPostgres } from "../support/postgres.ts";
import type { TestService } from "../support/service.ts";
import { chatModel, startService } from "../support/service.ts";
import { startUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import type { Tab } from "./chromium.ts";
import { hasChromium, launch, openTab } from "./chromium.ts";
import type { Seen } from "./page-timing.ts";
import { timeClick, timeFirstVisit, timePage, watchPage } from "./page-timing.ts";

const DAYS = 90;
const MODELS = 6;
const KEYS = 8;
const VISITS = 4;
const SECRET = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/** Limits: of a page's figures, of the first paint of a new visitor to a service just started, of its script. */
const SHOWN_MS_MAX = 500;
const FIRST_PAINT_MS_MAX = 1_000;
const SCRIPT_KB_MAX = 300;

const { values: flags } = parseArgs({
	options: { source: { type: "boolean", default: false }, rows: { type: "string", default: "1000000" } },
});

interface Filled {
	readonly service: TestService;
	readonly catalog: string;
	readonly customer: Person & { accountId: string };
	readonly boss: Person;
	readonly keyIds: string[];
	readonly requestId: string;
}

if (!hasChromium) process.exit(1);
const started = performance.now();
const say = (line: string) =>
	console.error(`${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s  ${line}`);
const folder = mkdtempSync(join(tmpdir(), "tollgate-million-"));
const upstream = startUpstream({ dialect: "vllm" });
const browser = await launch();
let slow: readonly string[];
const filled = await fill(Number(flags.rows));
try {
	slow = await measure(browser, filled);
} finally {
	await browser.close();
	await filled.service.stop();
	await upstream.stop();
	await stopTestPostgres();
	rmSync(folder, { recursive: true, force: true });
}
for (const line of slow) say(`over its limit: ${line}`);
process.exit(slow.length === 0 ? 0 : 1);

/** People, keys and rows; the service in this process stays idle beside the one that is measured. */
async function fill(rows: number): Promise<Filled> {
	say(`writing ${rows.toLocaleString("en-US")} rows`);
	const models = ["rare-model", ...Array.from({ length: MODELS }, (_, index) => `model-${index}`)]
		.map((id) => chatModel({ id, url: upstream.url, dialect: "vllm" }))
		.join("\n");
	const service = await startService({ models, env: { ...PERSON_ENV, KEY_PEPPER: SECRET, CONSOLE_SECRET: SECRET } });
	const [boss, customer] = [await operator(service), await signedUp(service)];
	await topUp(customer, boss, "1000");
	const keyIds: string[] = [];
	for (let number = 0; number < KEYS; number += 1)
		keyIds.push((await customer.send("POST", "/api/console/keys", { name: `key ${number}` })).body.key.id);
	await writeUsage(service.db, { accountId: customer.accountId, keyIds, rows, days: DAYS, models: MODELS });
	say("summing them");
	// The service folds by itself, but only within the deadline of its statements.
	await service.db.sql`update usage_cursor set horizon = null`;
	await service.db.sql`select usage_fold()`;
	await service.db.sql`analyze`;
	const { body } = await customer.get("/api/console/requests?limit=1");
	return { service, catalog: `models:\n${models}\n`, customer, boss, keyIds, requestId: body.items[0].id };
}

async function measure(browser: Browser, filled: Filled): Promise<string[]> {
	say(flags.source ? "starting from source" : "building the binary");
	const command = flags.source
		? [process.execPath, join(import.meta.dir, "../../src/main.ts")]
		: [await buildBinary(join(folder, "tollgate"))];
	const server = await startServer(command, filled);
	try {
		say("measuring");
		const over: string[] = [];
		const first = await timeFirstVisit(browser, server.url);
		const scriptKb = first.scriptBytes / 1024;
		if (first.paintMs > FIRST_PAINT_MS_MAX) over.push(`the first paint, ${first.paintMs.toFixed(0)} ms`);
		if (scriptKb > SCRIPT_KB_MAX) over.push(`the first script, ${scriptKb.toFixed(0)} KB`);
		const lines = [
			`Ready ${server.readyMs.toFixed(0)} ms after the start of the ${flags.source ? "source" : "binary"}. First visitor of the fresh process, empty cache: painted after ${first.paintMs.toFixed(0)} ms, figures after ${first.shownMs.toFixed(0)} ms; ${scriptKb.toFixed(0)} KB of script, ${(first.styleBytes / 1024).toFixed(0)} KB of style, ${(first.bytes / 1024).toFixed(0)} KB in all, packed.`,
			"",
			"| Page | First paint | Figures drawn | First visit | Received |",
			"|---|---:|---:|---:|---:|",
		];
		const add = (name: string, visits: readonly Seen[]) => {
			const [before, ...rest] = visits;
			const { paintMs, shownMs, bytes } = median(rest.length === 0 ? visits : rest);
			if (shownMs > SHOWN_MS_MAX) over.push(`${name}, ${shownMs.toFixed(0)} ms`);
			lines.push(
				`| ${name} | ${paintMs === 0 ? "" : `${paintMs.toFixed(0)} ms`} | ${shownMs.toFixed(0)} ms | ${before?.shownMs.toFixed(0)} ms | ${(bytes / 1024).toFixed(1)} KB |`,
			);
			say(lines.at(-1) ?? "");
		};
		const customer = await signIn(browser, server.url, filled.customer);
		await customerPages(customer, filled, add);
		await customer.close();
		const boss = await signIn(browser, server.url, filled.boss);
		for (const path of ["/operator", "/operator/accounts", `/operator/accounts/${filled.customer.accountId}`]) {
			add(`operator: ${path.startsWith("/operator/accounts/") ? "account" : path}`, await visits(boss, path));
		}
		await boss.close();
		console.log(lines.join("\n"));
		return over;
	} finally {
		await server.stop();
	}
}

async function customerPages(tab: Tab, filled: Filled, add: (name: string, visits: readonly Seen[]) => void) {
	add("overview", await visits(tab, "/overview"));
	add("keys", await visits(tab, "/keys"));
	add("key", await visits(tab, `/keys/${filled.keyIds[0]}`));
	for (const range of ["7d", "30d", "90d"]) {
		for (const group of ["model", "key", "status"]) {
			const path = `/usage?range=${range}&group=${group}`;
			add(`usage, ${range} by ${group}`, await visits(tab, path));
		}
	}
	add("requests", await visits(tab, "/requests"));
	for (const filter of [
		`key=${filled.keyIds[3]}`,
		"model=model-2",
		"status=failed",
		"range=90d&model=rare-model",
		`range=90d&model=model-2&key=${filled.keyIds[2]}&status=left`,
	]) {
		add(
			`requests, ${filter.replaceAll(/key=\w+/g, "one key").replaceAll("&", " ")}`,
			await visits(tab, `/requests?${filter}`),
		);
	}
	await timePage(tab.page, "/requests?range=90d");
	const pages: Seen[] = [];
	for (let page = 2; page <= 10; page += 1)
		pages.push(await timeClick(tab.page, () => tab.page.getByRole("button", { name: "Show more" }).click(), page * 50));
	add("requests, the tenth page", pages.slice(-1));
	add("request", await visits(tab, `/requests/${filled.requestId}`));
	add("credit with its ledger", await visits(tab, "/credit"));
}

async function visits(tab: Tab, path: string): Promise<Seen[]> {
	const seen: Seen[] = [];
	for (let visit = 0; visit < VISITS; visit += 1) seen.push(await timePage(tab.page, path));
	return seen;
}

function median(visits: readonly Seen[]): Seen {
	const middle = (pick: (seen: Seen) => number) =>
		visits.map(pick).sort((a, b) => a - b)[Math.floor(visits.length / 2)] ?? 0;
	return {
		paintMs: middle(({ paintMs }) => paintMs),
		shownMs: middle(({ shownMs }) => shownMs),
		bytes: middle(({ bytes }) => bytes),
	};
}

async function signIn(browser: Browser, url: string, person: Person): Promise<Tab> {
	const tab = await openTab(browser, url, { moves: true });
	await tab.page.addInitScript(watchPage);
	await tab.page.goto("/sign-in");
	await tab.page.getByLabel("Email").fill(person.email);
	await tab.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
	await tab.page.getByRole("button", { name: "Sign in", exact: true }).click();
	await tab.page.waitForURL("**/overview");
	return tab;
}

async function startServer(command: readonly string[], { service, catalog }: Filled) {
	const config = join(folder, "tollgate.yaml");
	writeFileSync(config, catalog);
	const socket = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
	const { port } = socket;
	socket.stop(true);
	const startMs = performance.now();
	const child = Bun.spawn([...command, "serve"], {
		cwd: folder,
		env: {
			PATH: Bun.env.PATH ?? "",
			HOME: folder,
			...PERSON_ENV,
			PORT: String(port),
			DATABASE_URL: service.db.url,
			DATA_DIR: join(folder, "data"),
			CONFIG: config,
			KEY_PEPPER: SECRET,
			CONSOLE_SECRET: SECRET,
			DRAIN_S: "2",
		},
		stdout: Bun.file(join(folder, "service.log")),
		stderr: Bun.file(join(folder, "service.log")),
	});
	const url = `http://127.0.0.1:${port}`;
	const isReady = async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok ?? false;
	await waitFor(isReady, "the service to be ready", 60_000).catch(async (error) => {
		child.kill();
		say(await Bun.file(join(folder, "service.log")).text());
		throw error;
	});
	return {
		url,
		readyMs: performance.now() - startMs,
		async stop() {
			child.kill();
			await child.exited;
		},
	};
}
