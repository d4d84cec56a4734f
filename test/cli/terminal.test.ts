import { expect, test } from "bun:test";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { findPostmaster } from "../../src/db/postmaster.ts";
import { quietPort } from "../chaos/serve-process.ts";
import { atEnd, temporaryFolder, testsMayTake } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { childrenWithRole, isRunning } from "../support/processes.ts";
import { waitFor } from "../support/wait.ts";
import { FROM_SOURCE, PROGRAM } from "./run-cli.ts";

testsMayTake(120_000);

/** Starts the program in a pseudo-terminal. */
const database = await withDatabase();
let server: Subprocess;
let shown = "";
const port = quietPort();

const folder = temporaryFolder(quickFolder());
const dataDir = () => join(folder, ".data", "demo");
const postmaster = () => findPostmaster(join(dataDir(), "postgres", "cluster"));
chmodSync(folder, 0o755);
mkdirSync(dataDir(), { recursive: true });
await placeCluster(dataDir());
atEnd(async () => {
	server.kill("SIGKILL");
	await server.exited;
	const left = postmaster();
	if (left !== undefined) process.kill(left.pid, "SIGQUIT");
	await waitFor(() => postmaster() === undefined, "the database to end");
});

function startAtTerminal(command: readonly string[], more: Record<string, string> = {}): void {
	const decoder = new TextDecoder();
	shown = "";
	server = Bun.spawn([...command], {
		cwd: folder,
		env: { PATH: process.env.PATH ?? "", HOME: folder, PORT: String(port), TERM: "xterm", ...more },
		terminal: {
			cols: 120,
			rows: 40,
			data: (_, bytes) => {
				shown += decoder.decode(bytes, { stream: true });
			},
		},
	});
}

test("a service in a terminal shows a banner and one-line errors, and ends on Ctrl-C", async () => {
	startAtTerminal(FROM_SOURCE);
	await waitFor(() => shown.includes("Ctrl-C stops."), "the banner", 60_000);
	expect(shown.trimStart()).toMatch(/^\S*Tollgate is running:/);
	expect(shown).not.toContain('{"time"');
	expect(shown).not.toMatch(/^\d\d:\d\d:\d\d /m);

	process.kill(postmaster()?.pid as number, "SIGKILL");
	await waitFor(() => /^\d\d:\d\d:\d\d .*warn.*PostgreSQL died.*$/m.test(shown), "a line about it", 30_000);
	await waitFor(() => postmaster()?.ready === true, "a new database", 30_000);
	expect(shown).not.toContain('{"time"');

	server.terminal?.write("\x03");
	expect(await server.exited).toBe(0);
	expect(postmaster()).toBeUndefined();
});

/** Uses an external database, because the binary has no embedded one; `embedded.test.ts` tests that. */
async function startWithDatabase(runner: readonly string[] = []): Promise<void> {
	startAtTerminal([...runner, ...PROGRAM], { DATABASE_URL: database.url, LEASE_TTL_S: "20", DRAIN_S: "2" });
	const isReady = () =>
		fetch(`http://127.0.0.1:${port}/readyz`)
			.then(({ ok }) => ok)
			.catch(() => false);
	await waitFor(isReady, "it to be ready", 60_000);
}

// The short form has a test of a command and SIGHUP in `embedded.test.ts`.
test.if(LONG)("a service ends with all its child processes when its terminal closes", async () => {
	await startWithDatabase();
	const children = [...childrenWithRole(server.pid, "gateway"), ...childrenWithRole(server.pid, "console")];
	expect(children).toHaveLength(2);
	// At a terminal SIGHUP ends the service; without a terminal it means a rolling restart.
	server.kill("SIGHUP");
	server.terminal?.close();
	expect(await server.exited).toBe(0);
	expect(children.filter(isRunning)).toEqual([]);
});

test.if(LONG)("a service under nohup continues after its terminal closed", async () => {
	await startWithDatabase(["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]);
	const gateways = () => childrenWithRole(server.pid, "gateway");
	const [gateway] = gateways();
	server.terminal?.close();
	// A service that is already stopping ignores the request for a rolling restart.
	server.kill("SIGUSR2");
	await waitFor(() => gateways().length === 2, "a successor");
	expect(gateways()).toContain(gateway as number);
	server.kill("SIGINT");
	expect(await server.exited).toBe(0);
});
