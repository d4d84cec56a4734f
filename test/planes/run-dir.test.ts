import { expect, test } from "bun:test";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
	consoleSocket,
	gatewaySocket,
	gatewaySockets,
	listenAtSocket,
	makeRunDir,
	removeRunDir,
} from "../../src/planes/run-dir.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";

const folder = temporaryFolder();
const answers = { fetch: () => new Response("here"), error: () => new Response(null), maxRequestBodySize: 1 };

test("a process creates its run folder in DATA_DIR, accessible to its user only", () => {
	const runDir = makeRunDir(folder);
	expect(dirname(runDir)).toBe(join(folder, "run"));
	expect(statSync(runDir).mode & 0o777).toBe(0o700);
	removeRunDir(runDir);
	expect(existsSync(runDir)).toBe(false);
});

test("the run folder is in the temporary directory if DATA_DIR's path is too long", async () => {
	const long = join(folder, "x".repeat(200));
	mkdirSync(long);
	const runDir = makeRunDir(long);
	atEnd(() => removeRunDir(runDir));
	expect([tmpdir(), "/tmp"]).toContain(dirname(runDir));
	const server = listenAtSocket(gatewaySocket(runDir, 64), answers);
	const response = await fetch("http://x/", { unix: gatewaySocket(runDir, 64) } as BunFetchRequestInit);
	expect(await response.text()).toBe("here");
	await server.stop(true);
});

test("a process removes only run folders whose processes were killed", () => {
	const ended = Bun.spawnSync(["true"]).pid;
	const [dead, ours, stranger] = [`tollgate-${ended}-abcdef`, `tollgate-${process.ppid}-abcdef`, "something-else"];
	for (const name of [dead, ours, stranger]) mkdirSync(join(folder, "run", name), { recursive: true });
	writeFileSync(join(folder, "run", dead, "console.sock"), "");
	removeRunDir(makeRunDir(folder));
	expect([dead, ours, stranger].map((name) => existsSync(join(folder, "run", name)))).toEqual([false, true, true]);
});

test("a process lists gateways' sockets, and replaces the socket of a dead gateway", async () => {
	const runDir = makeRunDir(folder);
	atEnd(() => removeRunDir(runDir));
	expect(gatewaySockets(join(runDir, "none"))).toEqual([]);
	writeFileSync(gatewaySocket(runDir, 2), "");
	const servers = [listenAtSocket(gatewaySocket(runDir, 2), answers), listenAtSocket(consoleSocket(runDir), answers)];
	expect(gatewaySockets(runDir)).toEqual([gatewaySocket(runDir, 2)]);
	const response = await fetch("http://x/", { unix: gatewaySocket(runDir, 2) } as BunFetchRequestInit);
	expect(await response.text()).toBe("here");
	for (const server of servers) await server.stop(true);
});
