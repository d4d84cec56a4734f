import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import type { ServerOwner } from "./server-owner.ts";

/** Complete environment of the server: this process's own contains secrets. The server's log is in UTC. */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/** Path of the current directory on Linux. It works even if folders above are closed to the user. */
const HERE = "/proc/self/cwd";

/**
 * Starts a PostgreSQL program as `owner` in `folder`, which it enters before it gives up root's rights. Its paths are
 * relative to the folder (`relativePath`), so the data may be where the owner cannot go, such as root's home.
 */
export function spawnPostgres(
	{
		folder,
		owner,
		binaries,
	}: { folder: string; owner: ServerOwner | undefined; binaries: { readonly folder: string } },
	program: "initdb" | "postgres",
	args: readonly string[],
	options: Pick<SpawnOptions, "stdio" | "detached">,
): ChildProcess {
	const ids = owner === undefined ? {} : { uid: owner.uid, gid: owner.gid };
	const path = join(binaries.folder, "bin", program);
	return spawn(path, [...args], { ...options, ...ids, cwd: folder, env: ENVIRONMENT });
}

/** Path of `folder` for a program that was started in it; except on Linux the plain path. */
export function relativePath(folder: string): string {
	return fs.existsSync(HERE) ? HERE : folder;
}

/** Kills `child` if this process exits during `work`; the child would otherwise continue without a parent. */
export async function killOnExit<Result>(child: () => ChildProcess | undefined, work: () => Promise<Result>) {
	const end = () => void child()?.kill("SIGINT");
	process.on("exit", end);
	try {
		return await work();
	} finally {
		process.off("exit", end);
	}
}

/** Resolves when the process has ended, with all text that it printed as `output`. Never rejects. */
export function waitForExit(child: ChildProcess): Promise<{ code: number | null; output: string }> {
	return new Promise((resolve) => {
		let output = "";
		for (const pipe of [child.stdout, child.stderr]) {
			pipe?.on("data", (chunk) => {
				output += String(chunk);
			});
		}
		child.on("error", (error) => resolve({ code: null, output: error.message }));
		child.on("close", (code) => resolve({ code, output }));
	});
}
