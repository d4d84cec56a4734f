import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeForeignPidFile } from "../../src/db/postmaster.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";

const cluster = join(temporaryFolder(), "cluster");
mkdirSync(cluster);
const pidFile = join(cluster, "postmaster.pid");

function started(argv: string[], cwd?: string) {
	const child = Bun.spawn(argv, { stdout: "pipe", ...(cwd === undefined ? {} : { cwd }) });
	atEnd(async () => {
		child.kill("SIGKILL");
		await child.exited;
	});
	return child;
}

/** State of a process as the system reports it (`Z` for a zombie); undefined if there is no such process. */
function stateOf(pid: number | undefined): string | undefined {
	try {
		return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
	} catch {
		return undefined;
	}
}

/** True if a start keeps a pid file that contains this id. */
function isKept(pid: number): boolean {
	writeFileSync(pidFile, `${pid}\n${cluster}\n1\n5432\n\n127.0.0.1\n\nready   \n`);
	removeForeignPidFile(cluster);
	return existsSync(pidFile);
}

test("the pid file of a killed Postgres stays while its child processes live", async () => {
	// The shell becomes `sleep`, which never reaps its ended child, so the child stays a zombie.
	const parent = started(["sh", "-c", "sleep 0.1 & echo $!; exec sleep 600"]);
	const { value } = await parent.stdout.getReader().read();
	const unreaped = Number(new TextDecoder().decode(value));
	await waitFor(() => stateOf(unreaped) === "Z", "its end");
	const survivor = started(["sleep", "600"], cluster);
	expect(isKept(unreaped)).toBe(true);
	survivor.kill("SIGKILL");
	await survivor.exited;
	expect(isKept(unreaped)).toBe(false);
});

test("the pid file that names another process than Postgres is deleted", async () => {
	const stranger = started(["sleep", "600"], cluster);
	expect(isKept(stranger.pid)).toBe(false);
	stranger.kill("SIGKILL");
	await stranger.exited;
	expect(isKept(stranger.pid)).toBe(true);
});
