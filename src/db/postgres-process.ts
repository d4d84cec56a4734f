import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import type { ServerOwner } from "./server-owner.ts";

/** Environment of the server: only this, because ours has secrets. Its log is in UTC, like ours. */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/** Path to a process's own working directory on Linux, whatever the folders above it. */
const HERE = "/proc/self/cwd";

/**
 * Starts a PostgreSQL program as `owner`, in `folder`, which it enters before giving up root's rights. It uses paths
 * relative to that folder (`relativePath`), so data may be in places that the owner cannot reach, such as root's
 * home.
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

/** Path of `folder` for a program started in it; the plain path on systems other than Linux. */
export function relativePath(folder: string): string {
	return fs.existsSync(HERE) ? HERE : folder;
}

/** Ends `child` if this process calls `process.exit` during `work`; otherwise the child would continue alone. */
export async function killedOnExit<Result>(child: () => ChildProcess | undefined, work: () => Promise<Result>) {
	const end = () => void child()?.kill("SIGINT");
	process.on("exit", end);
	try {
		return await work();
	} finally {
		process.off("exit", end);
	}
}

/** Resolves when the process has ended. `output` is the text from its pipes. Never rejects. */
export function exitOf(child: ChildProcess): Promise<{ code: number | null; output: string }> {
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
