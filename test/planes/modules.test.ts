/**
 * Checks which modules a process of each role has loaded after its work, because unloaded code costs no memory and
 * cannot leak.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startServe } from "../chaos/serve-process.ts";
import { FROM_SOURCE } from "../cli/run-cli.ts";
import { atEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { serviceFolder } from "../support/service-folder.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

const ROOT = join(import.meta.dir, "../..");
const database = await withDatabase();
const upstream = withUpstream("vllm");
const { folder, environment } = serviceFolder(database, upstream.url);

/** Names of the loaded folders of `src` and the loaded packages, such as `src/gateway` and `elysia`. */
async function loadedBy(role: "gateway" | "console", work: (url: string) => Promise<void>): Promise<Set<string>> {
	const file = join(folder, `${role}.json`);
	const mail = { SMTP_URL: "smtp://127.0.0.1:1", MAIL_FROM: "a@example.com" };
	const more = { ...mail, ROLE: role, STRIPE_SECRET_KEY: "sk_test_1", MODULES_FILE: file, DRAIN_S: "1" };
	const options = { preload: join(ROOT, "test/support/loaded-modules.ts"), program: FROM_SOURCE };
	const served = await startServe(environment(role, more), options);
	atEnd(() => served.kill("SIGTERM"));
	await work(served.url);
	process.kill(served.pid, "SIGUSR2");
	await waitFor(() => existsSync(file), "the list of modules");
	const paths: string[] = JSON.parse(readFileSync(file, "utf8"));
	const names = paths.map((path) => {
		const name = path.slice(path.lastIndexOf(ROOT) + ROOT.length + 1);
		const pattern = /node_modules\/((?:@[^/]+\/)?[^/]+)|^(src\/[^/]+)/.exec(name);
		return pattern?.[1] ?? pattern?.[2] ?? name;
	});
	return new Set(names);
}

test("a gateway loads neither the console's code nor its packages", async () => {
	const loaded = await loadedBy("gateway", async (url) => {
		for (const path of ["/v1/models", "/status", "/metrics", "/openapi.json", "/overview"])
			await fetch(`${url}${path}`);
		const refused = await fetch(`${url}/v1/chat/completions`, { method: "POST", body: "{}" });
		expect(refused.status).toBe(401);
	});
	expect([...loaded]).toEqual(
		expect.arrayContaining(["src/gateway", "src/ledger", "src/upstream", "elysia", "postgres"]),
	);
	const ofConsole = "src/console src/billing src/demo better-auth stripe nodemailer react drizzle-orm".split(" ");
	expect(ofConsole.filter((name) => loaded.has(name))).toEqual([]);
	expect([...loaded].filter((name) => name.startsWith("@opentelemetry/sdk"))).toEqual([]);
});

test("a console loads neither limits nor the YAML parser", async () => {
	const loaded = await loadedBy("console", async (url) => {
		expect((await fetch(`${url}/api/console/public/models`)).status).toBe(200);
		expect((await fetch(`${url}/api/console/me`)).status).toBe(401);
		expect((await fetch(`${url}/readyz`)).status).toBe(200);
		expect((await fetch(`${url}/v1/models`)).status).toBe(404);
		// A console that runs alone serves its own metrics.
		const figures = await (await fetch(`${url}/metrics`)).text();
		expect(figures).toContain("tollgate_mails_total");
		expect(figures).not.toContain("tollgate_admitting");
	});
	expect([...loaded]).toEqual(expect.arrayContaining(["src/console", "better-auth", "stripe", "nodemailer"]));
	expect(["src/limits", "yaml"].filter((name) => loaded.has(name))).toEqual([]);
});
