import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { loadConfig } from "../../src/config.ts";
import { createSignInLink } from "../../src/console/sign-in/new-sign-in-link.ts";
import { printDemoBanner, shellCommand } from "../../src/demo/demo.ts";
import { connectDemoModels, type DemoModels } from "../../src/demo/demo-models.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { type App, createApp } from "../support/app.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { waitFor } from "../support/wait.ts";

const ROOT = join(import.meta.dir, "../..");
const dataDir = temporaryFolder(quickFolder());

interface Run {
	readonly app: App;
	readonly demo: DemoModels;
	readonly banner: string;
}

/** Runs `serve` without a database and a catalogue, and without the search for model servers on this machine. */
async function start(): Promise<Run> {
	const config = loadConfig({ PORT: "0", DATA_DIR: dataDir }, dataDir);
	const app = await createApp(config, { log: silentLog });
	let banner = "";
	const out = (text: string) => {
		banner += text;
	};
	const { secrets, fixedCatalog, db } = app;
	const demo = await connectDemoModels({ log: silentLog, fixedCatalog }, { ownPort: 0, ports: [] });
	await printDemoBanner(
		{ log: silentLog, out, colour: false, databaseUrl: db.url },
		{
			url: app.url,
			keyPepper: secrets.keyPepper,
			newPepper: secrets.made.includes("KEY_PEPPER"),
			serviceName: config.serviceName,
			command: shellCommand(config, "tollgate"),
			publicUrl: config.publicUrl,
		},
		demo.description,
	);
	return { app, demo, banner };
}

async function stop({ app, demo }: Run): Promise<void> {
	await app.stop();
	await demo.stop();
}

// Copies a prepared database, because creating one is slow and these tests only concern the demo's data.
mkdirSync(join(dataDir, "demo"));
await placeCluster(join(dataDir, "demo"));
const first = await start();

test("the banner's curl command works when pasted into a shell", async () => {
	const line = first.banner.split("\n").find((text) => text.startsWith("curl ")) ?? "";
	const shell = Bun.spawn(["sh", "-c", `${line} -sS`], { stdout: "pipe", stderr: "inherit" });
	const answer = await new Response(shell.stdout).json();
	expect(answer).toMatchObject({ object: "chat.completion", model: "tollgate-demo" });
	expect(answer.choices[0].message.content).toContain("Hello! Who are you?");
	expect(answer.usage.completion_tokens).toBeGreaterThan(10);
});

test("the banner's SDK snippet works when pasted into a file", async () => {
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

test("the banner has no colour without a terminal", () => {
	expect(first.banner).not.toContain("\x1b");
});

const linkFor = (who: string, { banner }: Run = first) => {
	const link = new RegExp(`^ +${who} +(http://\\S+)$`, "m").exec(banner)?.[1];
	if (link === undefined) throw new Error(`no link for the ${who} in ${banner}`);
	return link;
};
const open = (link: string, headers: Record<string, string> = {}) => fetch(link, { redirect: "manual", headers });
const cookieOf = (response: Response) => response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
const ask = async (path: string, cookie: string) =>
	(await fetch(`${first.app.url}/api/console${path}`, { headers: { cookie } })).json();

test("a demo sign-in link is refused from other machines and then works on this one", async () => {
	const link = linkFor("Customer");
	const { host } = new URL(link);
	for (const headers of [
		{ "x-forwarded-for": "10.1.2.3" },
		{ "x-forwarded-for": "10.1.2.3, 127.0.0.1" },
		{ "x-real-ip": "10.1.2.3" },
		{ "x-tollgate-passed-on": "yes" },
		{ forwarded: "for=10.1.2.3" },
		{ host: `service.example:${host.split(":")[1]}` },
		{ "sec-purpose": "prefetch;prerender" },
	]) {
		const response = await open(link, headers);
		expect({ headers, status: response.status, cookies: response.headers.getSetCookie() }).toEqual({
			headers,
			status: 403,
			cookies: [],
		});
	}
	expect((await fetch(link, { method: "HEAD" })).status).toBe(404);
	expect((await open(link.replace("sign-in-link/customer/", "auth/magic-link/verify?token="))).status).toBe(404);
});

test("the demo's page of mails opens only on this machine and under its names", async () => {
	const { port } = new URL(first.app.url);
	const email = "guest@example.com";
	await fetch(`${first.app.url}/api/auth/sign-up/email`, {
		method: "POST",
		headers: { origin: first.app.url, "content-type": "application/json" },
		body: JSON.stringify({ name: "Guest", email, password: "correct horse battery staple" }),
	});
	const outbox = (headers: Record<string, string> = {}) =>
		fetch(`${first.app.url}/api/console/public/outbox?email=${email}`, { headers });
	for (const headers of [
		{ host: `attacker.example:${port}` },
		{ host: `localhost.attacker.example:${port}` },
		{ host: `attacker.example:${port}`, "x-forwarded-host": `localhost:${port}` },
		{ "x-forwarded-for": "10.1.2.3" },
		{ "x-tollgate-passed-on": "yes" },
		{ forwarded: "for=10.1.2.3" },
		{ via: "1.1 proxy" },
	])
		expect({ headers, status: (await outbox(headers)).status }).toEqual({ headers, status: 404 });
	for (const host of ["localhost", "127.0.0.1"]) {
		const links = async () => {
			const shown = await outbox({ host: `${host}:${port}` });
			return ((await shown.json()) as { items: { link: string }[] }).items.map(({ link }) => link);
		};
		await waitFor(async () => (await links()).length > 0, "the mail to be written");
		expect(new URL((await links())[0] ?? "").origin).toBe(first.app.url);
	}
});

test("a demo sign-in link opened many times at once signs in one browser", async () => {
	const responses = await Promise.all(Array.from({ length: 8 }, () => open(linkFor("Customer"))));
	const signedIn = responses.filter(({ status }) => status === 302);
	expect(signedIn).toHaveLength(1);
	expect(responses.filter(({ status }) => status === 410)).toHaveLength(7);
	expect(signedIn[0]?.headers.get("location")).toEndWith("/overview");
	const cookie = cookieOf(signedIn[0] as Response);
	// Only the response that signed a browser in may set the cookie of a known browser.
	const known = responses.map(
		({ headers }) => headers.getSetCookie().filter((line) => line.includes(".device=")).length,
	);
	expect(known.sort()).toEqual([0, 0, 0, 0, 0, 0, 0, 1]);
	const me = await ask("/me", cookie);
	expect(me).toMatchObject({ user: { email: "demo@localhost", operator: false }, account: { role: "owner" } });
	expect(await ask("/public/config", cookie)).toMatchObject({ demo: true });
	expect((await ask("/requests?limit=50", cookie)).items.length).toBe(50);
	expect((await ask("/operator/accounts", cookie)).error.code).toBe("forbidden");
	// A browser that is signed in is redirected even by a used link.
	const again = await open(linkFor("Customer"), { cookie });
	expect([again.status, again.headers.get("location"), cookieOf(again)]).toEqual([302, "/overview", ""]);
});

test("the operator's demo link opens operator pages; no other link can be requested", async () => {
	const signedIn = await open(linkFor("Operator"));
	expect(signedIn.headers.get("location")).toEndWith("/operator");
	const { items } = await ask("/operator/accounts", cookieOf(signedIn));
	expect(items.map(({ email }: { email: string }) => email)).toContain("demo@localhost");
	const asked = await fetch(`${first.app.url}/api/auth/sign-in/magic-link`, {
		method: "POST",
		headers: { origin: first.app.url, "content-type": "application/json" },
		body: JSON.stringify({ email: "operator@localhost" }),
	});
	expect(asked.status).toBe(404);
});

test("a demo sign-in link expires after hours and is not stored in the database", async () => {
	const { statements } = first.app.db;
	const path = await createSignInLink(statements, { email: "demo@localhost", page: "customer", hours: 1 });
	const [row] = await statements<{ text: string }>`select string_agg(verification::text, '') as text from verification`;
	expect(row?.text).not.toContain(path.split("/").at(-1) as string);
	await statements`update verification set expires_at = clock_timestamp() - interval '1 minute' where value like '%demo@localhost%'`;
	expect((await open(`${first.app.url}${path}`)).status).toBe(410);
});

test("the checks of the books pass with the demo's entries", async () => {
	expect((await reconcile(first.app.db.statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
});

test("a later start of the demo keeps the account and prints how to create a key", async () => {
	const secret = /sk_service_[A-Za-z0-9]{46}/.exec(first.banner)?.[0] ?? "";
	const { statements } = first.app.db;
	const old = await createSignInLink(statements, { email: "operator@localhost", page: "operator", hours: 1 });
	const balance = /USD ([\d.]+) of demo credit/;
	expect(Number(balance.exec(first.banner)?.[1])).toBeWithin(98, 100);
	await stop(first);
	const second = await start();
	try {
		expect(second.banner).not.toMatch(/sk_service_[A-Za-z0-9]{40}/);
		expect(second.banner).toMatch(/^DATA_DIR=\S+ tollgate key create --account acc_\w+ --name another$/m);
		expect(Number(balance.exec(second.banner)?.[1])).toBeLessThan(100);
		expect((await open(`${second.app.url}${old}`)).status).toBe(410);
		expect((await open(linkFor("Operator", second))).status).toBe(302);
		const headers = { authorization: `Bearer ${secret}` };
		expect((await fetch(`${second.app.url}/v1/models`, { headers })).status).toBe(200);
	} finally {
		await stop(second);
	}
}, 60_000);
