import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { App } from "../../src/app.ts";
import { createApp } from "../../src/app.ts";
import { silentLog } from "../../src/base/log.ts";
import { loadConfig } from "../../src/config.ts";
import { commandFor, greet } from "../../src/demo/demo.ts";
import type { DemoModels } from "../../src/demo/demo-models.ts";
import { connectDemoModels } from "../../src/demo/demo-models.ts";

const ROOT = join(import.meta.dir, "../..");
let dataDir: string;

interface Run {
	readonly app: App;
	readonly demo: DemoModels;
	readonly banner: string;
}
let first: Run;

/** `serve` with neither a database nor a file, and no look at what else runs on this machine. */
async function start(): Promise<Run> {
	const config = loadConfig({ PORT: "0", DATA_DIR: dataDir }, dataDir);
	const app = await createApp(config, { log: silentLog });
	let banner = "";
	const out = (text: string) => {
		banner += text;
	};
	const { secrets, fixedCatalog, db } = app;
	const demo = await connectDemoModels({ log: silentLog, fixedCatalog }, { ownPort: 0, ports: [] });
	await greet(
		{ log: silentLog, out, colour: false, statements: db.statements },
		{
			url: app.url,
			keyPepper: secrets.keyPepper,
			newPepper: secrets.made.includes("KEY_PEPPER"),
			serviceName: config.serviceName,
			command: commandFor(config, "tollgate"),
		},
		demo.description,
	);
	return { app, demo, banner };
}

async function stop({ app, demo }: Run): Promise<void> {
	await app.stop();
	await demo.stop();
}

beforeAll(async () => {
	dataDir = mkdtempSync(join(tmpdir(), "tollgate-first-run-"));
	first = await start();
}, 60_000);
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

test("the curl line of the banner works as pasted into a shell", async () => {
	const line = first.banner.split("\n").find((text) => text.startsWith("curl ")) ?? "";
	const shell = Bun.spawn(["sh", "-c", `${line} -sS`], { stdout: "pipe", stderr: "inherit" });
	const answer = await new Response(shell.stdout).json();
	expect(answer).toMatchObject({ object: "chat.completion", model: "tollgate-demo" });
	expect(answer.choices[0].message.content).toContain("Hello! Who are you?");
	expect(answer.usage.completion_tokens).toBeGreaterThan(10);
});

test("the SDK snippet of the banner works as pasted into a file", async () => {
	const lines = first.banner.split("\n");
	const from = lines.findIndex((text) => text.startsWith("import OpenAI"));
	const to = lines.findIndex((text) => text.startsWith("for await"));
	const path = join(dataDir, "try.mjs");
	writeFileSync(path, lines.slice(from, to + 1).join("\n"));
	const script = Bun.spawn([process.execPath, "--preload", join(ROOT, "node_modules/openai/index.mjs"), path], {
		cwd: ROOT,
		env: { ...process.env, NODE_PATH: join(ROOT, "node_modules") },
		stdout: "pipe",
		stderr: "inherit",
	});
	expect(await new Response(script.stdout).text()).toContain("demo model that is built into Tollgate");
	expect(await script.exited).toBe(0);
});

test("without a terminal the banner has no colour", () => {
	expect(first.banner).not.toContain("\x1b");
});

test("a later start on the same data keeps the account and says how to make another key, and shows no secret", async () => {
	const secret = /sk_service_[A-Za-z0-9]{46}/.exec(first.banner)?.[0] ?? "";
	const balance = /USD ([\d.]+) of demo credit/;
	expect(balance.exec(first.banner)?.[1]).toBe("100.00");
	await stop(first);
	const second = await start();
	try {
		expect(second.banner).not.toMatch(/sk_service_[A-Za-z0-9]{40}/);
		expect(second.banner).toMatch(/^DATA_DIR=\S+ tollgate key create --account acc_\w+ --name another$/m);
		expect(Number(balance.exec(second.banner)?.[1])).toBeLessThan(100);
		const headers = { authorization: `Bearer ${secret}` };
		expect((await fetch(`${second.app.url}/v1/models`, { headers })).status).toBe(200);
	} finally {
		await stop(second);
	}
}, 60_000);
