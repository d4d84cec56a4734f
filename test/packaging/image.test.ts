/**
 * The image's command as in the Dockerfile: its user, its environment, only its volume writable. As root, the test
 * becomes that user; otherwise read-only folders have the same effect.
 */
import { expect, test } from "bun:test";
import {
	chmodSync,
	chownSync,
	copyFileSync,
	existsSync,
	mkdirSync,
	readdirSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { quietPort } from "../chaos/serve-process.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { chatModel } from "../support/service.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { buildBinary } from "./build-binary.ts";
import { image } from "./dockerfile.ts";

const IS_ROOT = process.getuid?.() === 0;
const SECRET = "d39f0b1c66a84e2f9b7751c0e4a2d8f6";

const root = temporaryFolder();
atEnd(() => Bun.spawnSync(["chmod", "-R", "u+w", root]));
const within = (path: string) => join(root, path);
const db = await withDatabase();
const upstream = withUpstream("vllm");

/** Assembles the Dockerfile's file system, read-only and without the base image's libraries. */
async function assemble(): Promise<void> {
	for (const path of ["usr/local/bin", image.volume, "etc/tollgate", "tmp"])
		mkdirSync(within(path), { recursive: true });
	const binary = await buildBinary(within("built"));
	copyFileSync(binary, within(image.command[0] as string));
	writeFileSync(
		within("etc/tollgate/tollgate.yaml"),
		`models:\n${chatModel({ url: upstream.url, dialect: "vllm" })}\n`,
	);
	expect(Bun.spawnSync(["chmod", "-R", "a=rX,a-w", root]).success).toBe(true);
	chmodSync(within(image.command[0] as string), 0o555);
	chmodSync(within(image.volume), 0o755);
	if (IS_ROOT) chownSync(within(image.volume), image.uid, image.uid);
}

function spawnThere(args: readonly string[]) {
	const drop = IS_ROOT ? ["setpriv", `--reuid=${image.uid}`, `--regid=${image.uid}`, "--clear-groups"] : [];
	return Bun.spawn([...drop, within(image.command[0] as string), ...args], {
		cwd: within(image.workdir),
		env: {
			...image.env,
			HOST: "127.0.0.1",
			PORT: String(quietPort()),
			DATA_DIR: within(image.env.DATA_DIR as string),
			TMPDIR: within("tmp"),
			DATABASE_URL: db.url,
			CONFIG: within("etc/tollgate/tollgate.yaml"),
			KEY_PEPPER: SECRET,
			CONSOLE_SECRET: SECRET,
		},
		stdio: ["ignore", "pipe", "pipe"],
	});
}

async function command(...args: string[]): Promise<Record<string, string>> {
	const child = spawnThere([...args, "--json"]);
	const [out, problem] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
	expect([args.join(" "), await child.exited, problem]).toEqual([args.join(" "), 0, ""]);
	return JSON.parse(out);
}

test("the image serves as its user, writes to its volume only, and drains", async () => {
	await assemble();
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

	const account = await command("account", "create", "--email", "a@example.com");
	const topUp = await command(
		"topup",
		"create",
		"--account",
		account.id as string,
		"--usd",
		"100",
		"--reference",
		"r1",
	);
	await command("topup", "confirm", topUp.id as string);
	const { secret } = await command("key", "create", "--account", account.id as string, "--name", "test");
	upstream.next(reply().trickle(20));
	const stream = await fetch(`${url}/v1/chat/completions`, {
		method: "POST",
		headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
		body: JSON.stringify({ model: "test-model", stream: true, messages: [{ role: "user", content: "a ".repeat(20) }] }),
	});
	expect(stream.status).toBe(200);
	server.kill(image.stopSignal);
	// The process ends only after the running stream.
	const text = await stream.text();
	expect([text.includes('"error"'), text.endsWith("data: [DONE]\n\n")]).toEqual([false, true]);
	expect(await server.exited).toBe(0);
	await reading;
	expect(log).not.toContain('"level":"error"');
	expect(Number((await command("account", "show", account.id as string)).spent_usd)).toBeGreaterThan(0);

	expect(readdirSync(within(image.volume)).toSorted()).toEqual([
		"control",
		"database-timelines.json",
		"instance-id",
		"journal",
		"journal-kept",
		"run",
	]);
	expect(readdirSync(within("tmp"))).toEqual([]);
	expect(existsSync(within("etc/tollgate/tollgate.yaml"))).toBe(true);
}, 120_000);
