/**
 * The compiled binary as the image runs it: in an empty directory, with a clean environment and its own database.
 * `TOLLGATE_BINARY=path bun test test/packaging` tests an existing binary.
 */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import OpenAI from "openai";
import packageJson from "../../package.json" with { type: "json" };
import { quietPort } from "../chaos/serve-process.ts";
import { operator } from "../console/person.ts";
import { atEnd, temporaryFolder, testsMayTake } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { childrenWithRole, residentBytes } from "../support/processes.ts";
import { chatModel } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { buildBinary } from "./build-binary.ts";

const MESSAGES = [{ role: "user" as const, content: "one two three" }];

testsMayTake(120_000);

let server: Subprocess<"ignore", "ignore", "pipe">;
let url = "";
let serverLog = "";
let accountId = "";
let keyId = "";
let client: OpenAI;

const home = temporaryFolder();
const directory = join(home, "empty");
mkdirSync(directory);
const binary = await buildBinary(join(home, "tollgate"));
const db = await withDatabase();
const upstream = withUpstream("vllm");
writeFileSync(join(home, "models.yaml"), `models:\n${chatModel({ url: upstream.url, dialect: "vllm" })}\n`);
const environment: Record<string, string> = {
	NODE_ENV: "production",
	DATABASE_URL: db.url,
	CONFIG: join(home, "models.yaml"),
	DATA_DIR: join(home, "data"),
	KEY_PEPPER: "p".repeat(32),
	CONSOLE_SECRET: "c".repeat(32),
	PORT: String(quietPort()),
	DRAIN_S: "5",
};
atEnd(async () => {
	server?.kill("SIGKILL");
	await server?.exited;
});

async function run(args: string[], env: Record<string, string> = environment) {
	const child = Bun.spawn([binary, ...args], { cwd: directory, env, stdout: "pipe", stderr: "pipe" });
	const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
	return { code: await child.exited, out, err };
}

async function command(...args: string[]) {
	const { code, out, err } = await run([...args, "--json"]);
	expect({ args, code, err }).toEqual({ args, code: 0, err: "" });
	return JSON.parse(out);
}

test("the binary runs its commands", async () => {
	const { version, commit } = await command("version");
	// An existing binary may have been built without the Git history.
	if (process.env.TOLLGATE_BINARY === undefined && Bun.which("git")) expect(commit).toMatch(/^[0-9a-f]{12}(-dirty)?$/);
	expect(version).toBe(commit === null ? packageJson.version : `${packageJson.version}+${commit}`);
	expect((await run(["--version"])).out).toBe(`${version}\n`);
	expect(await command("migrate")).toEqual({ applied: [] });
	expect(await command("catalog", "check", join(home, "models.yaml"))).toMatchObject({ ok: true });
	({ id: accountId } = await command("account", "create", "--email", "a@example.com"));
	const topUp = await command("topup", "create", "--account", accountId, "--usd", "100", "--reference", "r1");
	expect(topUp.status).toBe("pending");
	expect(await command("topup", "confirm", topUp.id)).toEqual({ status: "confirmed" });
	const key = await command("key", "create", "--account", accountId, "--name", "test");
	expect(key.secret).toStartWith("sk_service_");
	keyId = key.id;
	client = new OpenAI({ apiKey: key.secret, maxRetries: 0 });
});

test("the binary serves without reading .env or bunfig.toml of its directory", async () => {
	writeFileSync(join(directory, ".env"), "LOG_LEVEL=nonsense\nDATABASE_URL=nonsense\n");
	writeFileSync(join(directory, "bunfig.toml"), 'preload = ["./missing.ts"]\n');
	server = Bun.spawn([binary], { cwd: directory, env: environment, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
	void (async () => {
		for await (const chunk of server.stderr) serverLog += new TextDecoder().decode(chunk);
	})();
	await waitFor(() => /"url":"([^"]+)"/.test(serverLog) || server.exitCode !== null, "the server to listen");
	url = /"url":"([^"]+)"/.exec(serverLog)?.[1] ?? serverLog;
	client.baseURL = `${url}/v1`;
	await waitFor(async () => (await fetch(`${url}/readyz`)).status === 200, "the server to be ready");
	expect(await run(["health", "--ready"], { ...environment, PORT: new URL(url).port })).toMatchObject({ code: 0 });
});

test("the binary answers chats, whole and streamed, with the server's counts", async () => {
	const answer = await client.chat.completions.create({ model: "test-model", messages: MESSAGES });
	expect(answer.choices[0]?.message.content).toBe("echo: one two three");
	const stream = await client.chat.completions.create({ model: "test-model", messages: MESSAGES, stream: true });
	let text = "";
	let usage: OpenAI.CompletionUsage | null | undefined;
	for await (const event of stream) {
		text += event.choices[0]?.delta.content ?? "";
		usage = event.usage ?? usage;
	}
	expect(text).toBe("echo: one two three");
	expect(usage).toEqual(answer.usage as OpenAI.CompletionUsage);
});

test("the binary writes charged usage to Postgres", async () => {
	const { prompt, completion } = upstream.count();
	const expected = prompt * 1_000 + completion * 2_000;
	const charged = async () => (await db.sql`select sum(charged_nano_usd)::bigint as nano from usage_event`)[0]?.nano;
	await waitFor(async () => Number(await charged()) === expected, `${expected} nano-dollars to be charged`);
	expect(Number((await command("account", "show", accountId)).spent_usd)).toBe(expected / 1e9);
	expect(await command("ledger", "reconcile")).toMatchObject({ ok: true });
});

test("the binary serves pages from a second process", async () => {
	const page = await fetch(`${url}/overview`, { headers: { accept: "text/html" } });
	const script = /src="(\/assets\/[^"]+\.js)"/.exec(await page.text())?.[1] ?? "none";
	expect([page.status, (await fetch(`${url}${script}`)).status]).toEqual([200, 200]);
	const { items } = await (await fetch(`${url}/api/console/public/models`)).json();
	expect(items).toMatchObject([{ id: "test-model", status: "connected" }]);
	const roles = childrenWithRole(server.pid, "console");
	expect([roles.length, childrenWithRole(server.pid, "gateway").length]).toEqual([1, 1]);
});

test("the binary's processes take less than 250 MB together", () => {
	const pids = [server.pid, ...childrenWithRole(server.pid, "console"), ...childrenWithRole(server.pid, "gateway")];
	const megabytes = pids.map(residentBytes).map((bytes) => Math.round(bytes / 1024 / 1024));
	console.log(`parent, console, gateway: ${megabytes.join(" + ")} MB`);
	expect(megabytes).toHaveLength(3);
	expect(megabytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(250);
});

test("the binary lists models", async () => {
	const { data } = await client.models.list();
	expect(data.map(({ id }) => id)).toEqual(["test-model"]);
	expect(await client.models.retrieve("test-model")).toMatchObject({ id: "test-model", status: "connected" });
});

test("the binary refuses a revoked key immediately", async () => {
	expect(await command("key", "revoke", keyId)).toMatchObject({ id: keyId, effective: true });
	const refused = client.models.list().catch((error) => error.code);
	expect(await refused).toBe("api_key_revoked");
});

test("the binary contains the fonts for PDF statements", async () => {
	const person = await operator({ url, db });
	const month = new Date().toISOString().slice(0, 7);
	const statement = await person.fetch(`/api/console/credit/statement.pdf?month=${month}`);
	expect([statement.status, (await statement.text()).slice(0, 5)]).toEqual([200, "%PDF-"]);
});

test("the binary stops at SIGTERM and has written only to DATA_DIR", async () => {
	server.kill("SIGTERM");
	expect(await server.exited).toBe(0);
	expect(serverLog).not.toContain('"level":"error"');
	expect(readdirSync(directory).sort()).toEqual([".env", "bunfig.toml"]);
});

test("the binary names missing settings: a database and production secrets", async () => {
	const { DATABASE_URL: _, ...withoutDatabase } = environment;
	const noDatabase = await run(["serve"], withoutDatabase);
	expect(noDatabase.code).toBe(1);
	expect(noDatabase.err).toContain("set DATABASE_URL");
	const { KEY_PEPPER: __, ...withoutPepper } = environment;
	const noPepper = await run(["serve"], withoutPepper);
	expect(noPepper.code).toBe(1);
	expect(noPepper.err).toContain("KEY_PEPPER is required in production");
});
