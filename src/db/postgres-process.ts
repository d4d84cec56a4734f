import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import type { PostgresBinaries } from "./postgres-binaries.ts";
import type { ServerOwner } from "./server-owner.ts";

/**
 * All that the server and its children get of an environment: ours has secrets that a database need not know. Its own
 * log is in UTC, as ours is.
 */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/** Linux's name for the folder that a process works in, whatever is above it. */
const HERE = "/proc/self/cwd";

/**
 * Starts one of PostgreSQL's programs as `owner`, in `folder`. The folder is entered before the rights of root are
 * given up, and the programs call it by a name that leads through no other folder (`nameFromInside`): so the data may
 * lie where the owner cannot pass, below root's own home.
 */
export function spawnPostgres(
	{ folder, owner, binaries }: { folder: string; owner: ServerOwner | undefined; binaries: PostgresBinaries },
	program: "initdb" | "postgres",
	args: readonly string[],
	options: Pick<SpawnOptions, "stdio" | "detached">,
): ChildProcess {
	const ids = owner === undefined ? {} : { uid: owner.uid, gid: owner.gid };
	const path = join(binaries.folder, "bin", program);
	return spawn(path, [...args], { ...options, ...ids, cwd: folder, env: ENVIRONMENT });
}

/** What a program that was started in `folder` calls it. Elsewhere than on Linux it is the path. */
export function nameFromInside(folder: string): string {
	return fs.existsSync(HERE) ? HERE : folder;
}

/** While `work` runs an end of this process by `process.exit` ends `child` too, which would go on without it. */
export async function endingWithUs<Result>(
	child: () => ChildProcess | undefined,
	work: () => Promise<Result>,
): Promise<Result> {
	const end = () => void child()?.kill("SIGINT");
	process.on("exit", end);
	try {
		return await work();
	} finally {
		process.off("exit", end);
	}
}

/** Resolves when the process has ended. `output`: what it wrote to its pipes. Never rejects. */
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
