/**
 * The image's command as in the Dockerfile: its user, its environment, only its volume writable. As root, the test
 * becomes that user; otherwise read-only folders have the same effect. `TOLLGATE_BINARY=path` tests a given binary.
 */
import { expect, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { quietPort } from "../chaos/serve-process.ts";
import { operator } from "../console/person.ts";
import { atEnd, temporaryFolder, testsMayTake } from "../support/at-end.ts";
import { ask, postJson } from "../support/chat.ts";
import { withDatabase } from "../support/database.ts";
import { childrenWithRole, residentBytes } from "../support/processes.ts";
import { chatModel } from "../support/service.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { buildBinary } from "./build-binary.ts";
import { image } from "./dockerfile.ts";

testsMayTake(120_000);

const IS_ROOT = process.getuid?.() === 0;
const SECRET = "d39f0b1c66a84e2f9b7751c0e4a2d8f6";

const root = temporaryFolder();
atEnd(() => Bun.spawnSync(["chmod", "-R", "u+w", root]));
const within = (path: string) => join(root, path);
const program = within(image.command[0] as string);
const db = await withDatabase();
const upstream = withUpstream("vllm");
await assemble();

/** Assembles the Dockerfile's file system, read-only and without the base image's libraries. */
async function assemble(): Promise<void> {
	for (const path of ["usr/local/bin", image.volume, "etc/tollgate", "tmp"])
		mkdirSync(within(path), { recursive: true });
	copyFileSync(await buildBinary(within("built")), program);
	writeFileSync(
		within("etc/tollgate/tollgate.yaml"),
		`models:\n${chatModel({ url: upstream.url, dialect: "vllm" })}\n`,
	);
	// Bun reads these files in its working directory; the binary must not.
	writeFileSync(within(`${image.workdir}/.env`), "LOG_LEVEL=nonsense\nDATABASE_URL=nonsense\n");
	writeFileSync(within(`${image.workdir}/bunfig.toml`), 'preload = ["./missing.ts"]\n');
	expect(Bun.spawnSync(["chmod", "-R", "a=rX,a-w", root]).success).toBe(true);
	chmodSync(program, 0o555);
	chmodSync(within(image.volume), 0o755);
	if (IS_ROOT) chownSync(within(image.volume), image.uid, image.uid);
}

const environment: Record<string, string> = {
	...image.env,
	HOST: "127.0.0.1",
	PORT: String(quietPort()),
	DATA_DIR: within(image.env.DATA_DIR as string),
	TMPDIR: within("tmp"),
	DATABASE_URL: db.url,
	CONFIG: within("etc/tollgate/tollgate.yaml"),
	KEY_PEPPER: SECRET,
	CONSOLE_SECRET: SECRET,
};

function spawnThere(args: readonly string[], env = environment) {
	const drop = IS_ROOT ? ["setpriv", `--reuid=${image.uid}`, `--regid=${image.uid}`, "--clear-groups"] : [];
	return Bun.spawn([...drop, program, ...args], { cwd: within(image.workdir), env, stdio: ["ignore", "pipe", "pipe"] });
}

async function run(args: readonly string[], env = environment) {
	const child = spawnThere(args, env);
	const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
	return { code: await child.exited, out, err };
}

async function command(...args: string[]) {
	const { code, out, err } = await run([...args, "--json"]);
	expect({ args, code, err }).toEqual({ args, code: 0, err: "" });
	return JSON.parse(out);
}

test("the binary prints a version with its commit, checks catalogues and migrates", async () => {
	const { version, commit } = await command("version");
	// An existing binary may have been built without the Git history.
	if (process.env.TOLLGATE_BINARY === undefined && Bun.which("git")) expect(commit).toMatch(/^[0-9a-f]{12}(-dirty)?$/);
	expect(version).toBe(commit === null ? packageJson.version : `${packageJson.version}+${commit}`);
	expect(await command("catalog", "check", environment.CONFIG as string)).toMatchObject({ ok: true });
	expect(await command("migrate")).toEqual({ applied: [] });
});

test("the binary without a database or production secrets names the missing settings", async () => {
	for (const [name, message] of [
		["DATABASE_URL", "set DATABASE_URL"],
		["KEY_PEPPER", "KEY_PEPPER is required in production"],
	] as const) {
		const { [name]: _, ...without } = environment;
		expect(await run(["serve"], without)).toMatchObject({ code: 1, err: expect.stringContaining(message) });
	}
});

test("the container image serves as its user, writes only to its volume, and drains", async () => {
	if (IS_ROOT) expect(statSync(within(image.volume)).uid).toBe(image.uid);
	const server = spawnThere(image.command.slice(1));
	let log = "";
	const reading = (async () => {
		for await (const chunk of server.stderr) log += new TextDecoder().decode(chunk);
	})();
	atEnd(async () => {
		server.kill("SIGKILL");
		await server.exited;
	});
	await waitFor(() => log.includes('"all processes are ready"') || server.exitCode !== null, "it to be ready", 60_000);
	const url = /"url":"([^"]+)"/.exec(log)?.[1] ?? log;
	expect((await fetch(`${url}/readyz`)).status).toBe(200);
	expect(await run(["health", "--ready"])).toMatchObject({ code: 0 });

	// The second process of the same binary serves the console, with its pages and fonts.
	const page = await fetch(`${url}/overview`, { headers: { accept: "text/html" } });
	const script = /src="(\/assets\/[^"]+\.js)"/.exec(await page.text())?.[1] ?? "none";
	expect([page.status, (await fetch(`${url}${script}`)).status]).toEqual([200, 200]);
	// A limit of all three processes, with shared pages counted in each.
	const pids = [server.pid, ...childrenWithRole(server.pid, "console"), ...childrenWithRole(server.pid, "gateway")];
	expect(pids).toHaveLength(3);
	const megabytes = () => pids.map((pid) => Math.round(residentBytes(pid) / 1024 / 1024));
	// Just after the start the processes have not yet returned the memory that starting took.
	await waitFor(() => megabytes().reduce((sum, one) => sum + one, 0) < 250, "all to take less than 250 MB");
	console.log(`parent, console, gateway: ${megabytes().join(" + ")} MB`);
	const month = new Date().toISOString().slice(0, 7);
	const person = await operator({ url, db });
	const statement = await person.fetch(`/api/console/credit/statement.pdf?month=${month}`);
	expect([statement.status, (await statement.text()).slice(0, 5)]).toEqual([200, "%PDF-"]);

	const account = await command("account", "create", "--email", "a@example.com");
	const topUp = await command("topup", "create", "--account", account.id, "--usd", "100", "--reference", "r1");
	await command("topup", "confirm", topUp.id);
	const { secret } = await command("key", "create", "--account", account.id, "--name", "test");
	upstream.next(reply().trickle(20));
	const stream = await postJson(`${url}/v1/chat/completions`, secret, ask("a ".repeat(20), { stream: true }));
	expect(stream.status).toBe(200);
	server.kill(image.stopSignal);
	// The process ends only after the running stream.
	const text = await stream.text();
	expect([text.includes('"error"'), text.endsWith("data: [DONE]\n\n")]).toEqual([false, true]);
	expect(await server.exited).toBe(0);
	await reading;
	expect(log).not.toContain('"level":"error"');
	expect(Number((await command("account", "show", account.id)).spent_usd)).toBeGreaterThan(0);
	expect(await command("ledger", "reconcile")).toMatchObject({ ok: true });

	expect(readdirSync(within(image.volume)).toSorted()).toEqual([
		".env",
		"bunfig.toml",
		"control",
		"database-timelines.json",
		"instance-id",
		"journal",
		"journal-kept",
		"run",
	]);
	expect(readdirSync(within("tmp"))).toEqual([]);
});
