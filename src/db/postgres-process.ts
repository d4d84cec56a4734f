import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import type { ServerOwner } from "./server-owner.ts";

/**
 * The whole environment of the server and its children: ours has secrets that a database need not know. Logs in UTC, as
 * ours do.
 */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/** Linux's name for the working directory of a process, whatever the folders above it. */
const HERE = "/proc/self/cwd";

/**
 * Starts one of PostgreSQL's programs as `owner`, in `folder`, which it enters before it gives up the rights of root.
 * The programs use a path through no other folder (`nameFromInside`), so the data may be where the owner may not pass,
 * such as below root's home.
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

/** The path of `folder` for a program that was started in it; on other systems than Linux the plain path. */
export function nameFromInside(folder: string): string {
	return fs.existsSync(HERE) ? HERE : folder;
}

/** If this process ends by `process.exit` while `work` runs, `child` is ended too; it would otherwise go on alone. */
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

/** Resolves when the process has ended. `output`: the text of its pipes. Never rejects. */
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
