import { expect, test } from "bun:test";
import { chownSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import {
	consoleSocket,
	gatewaySocket,
	gatewaySockets,
	makeRunDir,
	removeRunDir,
	serveAt,
} from "../../src/planes/run-dir.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";

const folder = temporaryFolder();
const answers = { fetch: () => new Response("here"), error: () => new Response(null), maxRequestBodySize: 1 };

test("the folder is under DATA_DIR, and only its user may enter it", () => {
	const runDir = makeRunDir(folder);
	expect(dirname(runDir)).toBe(join(folder, "run"));
	expect(statSync(runDir).mode & 0o777).toBe(0o700);
	removeRunDir(folder, runDir);
	expect(existsSync(runDir)).toBe(false);
});

test("where that path is too long for a socket, a shorter one is taken, and a socket fits", async () => {
	const long = join(folder, "x".repeat(200));
	mkdirSync(long);
	const runDir = makeRunDir(long);
	atEnd(() => removeRunDir(long, runDir));
	expect([tmpdir(), "/tmp"]).toContain(dirname(runDir));
	const server = serveAt(gatewaySocket(runDir, 64), answers);
	const response = await fetch("http://x/", { unix: gatewaySocket(runDir, 64) } as BunFetchRequestInit);
	expect(await response.text()).toBe("here");
	await server.stop(true);
});

test("what killed processes left behind is taken away, what a living one uses is not", () => {
	const ended = Bun.spawnSync(["true"]).pid;
	const [dead, ours, stranger] = [`tollgate-${ended}-abcdef`, `tollgate-${process.ppid}-abcdef`, "something-else"];
	for (const name of [dead, ours, stranger]) mkdirSync(join(folder, "run", name), { recursive: true });
	writeFileSync(join(folder, "run", dead, "console.sock"), "");
	removeRunDir(folder, makeRunDir(folder));
	expect([dead, ours, stranger].map((name) => existsSync(join(folder, "run", name)))).toEqual([false, true, true]);
});

test("also where they were elsewhere: those of this DATA_DIR alone, and what an end in order leaves is nothing", () => {
	const long = join(folder, "y".repeat(200));
	const place = dirname(makeRunDir(long));
	const ended = Bun.spawnSync(["true"]).pid;
	const [dead, others] = [join(place, `tollgate-${ended}-abcdef`), join(place, `tollgate-${ended}-fedcba`)];
	for (const path of [dead, others]) mkdirSync(path);
	atEnd(() => rmSync(others, { recursive: true, force: true }));
	writeFileSync(join(dead, "console.sock"), "");
	symlinkSync(dead, join(long, "run", basename(dead)));
	// Of no folder that was made for sockets.
	symlinkSync(others, join(long, "run", `tollgate-${ended}-ababab`));
	const next = makeRunDir(long);
	expect([dead, others, next].map((path) => existsSync(path))).toEqual([false, true, true]);
	removeRunDir(long, next);
	expect(existsSync(next)).toBe(false);
	expect(readdirSync(join(long, "run"))).toEqual([]);
});

test("gateways are found by their sockets, also at one that a dead one left, which the next takes over", async () => {
	const runDir = makeRunDir(folder);
	atEnd(() => removeRunDir(folder, runDir));
	expect(gatewaySockets(join(runDir, "none"))).toEqual([]);
	writeFileSync(gatewaySocket(runDir, 2), "");
	const servers = [serveAt(gatewaySocket(runDir, 2), answers), serveAt(consoleSocket(runDir), answers)];
	expect(gatewaySockets(runDir)).toEqual([gatewaySocket(runDir, 2)]);
	const response = await fetch("http://x/", { unix: gatewaySocket(runDir, 2) } as BunFetchRequestInit);
	expect(await response.text()).toBe("here");
	for (const server of servers) await server.stop(true);
});

test("who starts behind a cleaner of temporary files makes the folder again, and takes none of somebody else's", async () => {
	const runDir = makeRunDir(folder);
	atEnd(() => removeRunDir(folder, runDir));
	removeRunDir(folder, runDir);
	const server = serveAt(consoleSocket(runDir), answers);
	const response = await fetch("http://x/", { unix: consoleSocket(runDir) } as BunFetchRequestInit);
	expect(await response.text()).toBe("here");
	expect(statSync(runDir).mode & 0o777).toBe(0o700);
	await server.stop(true);
	// Only root can make a folder somebody else's.
	if (process.geteuid?.() !== 0) return;
	chownSync(runDir, 65_534, 65_534);
	expect(() => serveAt(consoleSocket(runDir), answers)).toThrow("is another user's");
});
