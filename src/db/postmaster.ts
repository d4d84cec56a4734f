import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isProcessAlive } from "../base/process-alive.ts";

/** A running PostgreSQL server, as `postmaster.pid` and the operating system describe it. */
export interface Postmaster {
	readonly pid: number;
	readonly port: number;
	/** False while the server is starting or stopping. */
	readonly ready: boolean;
}

/**
 * The server that runs on this data directory; undefined if none. A pid file can outlive its server, and another
 * process may get its pid. So only a process with this directory in its command line counts; a zombie has none.
 */
export function findPostmaster(cluster: string): Postmaster | undefined {
	const file = readPidFile(cluster);
	return file !== undefined && servesCluster(file.pid, cluster) ? file : undefined;
}

/**
 * Removes a pid file whose pid belongs to another process, because PostgreSQL would not start. If no process has the
 * pid, PostgreSQL decides itself; it also looks for surviving child processes, which may still confirm statements. A
 * killed server that its parent has not reaped is recognized by its process state; its file stays while children live.
 */
export function removeForeignPidFile(cluster: string): void {
	const file = readPidFile(cluster);
	if (file === undefined || !isProcessAlive(file.pid) || servesCluster(file.pid, cluster)) return;
	if (isUnreaped(file.pid) && hasSurvivors(cluster)) return;
	rmSync(join(cluster, "postmaster.pid"), { force: true });
}

function isUnreaped(pid: number): boolean {
	try {
		return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
	} catch {
		return !existsSync("/proc/self/stat") && listed(pid, "stat").startsWith("Z");
	}
}

/** True if any process works in this directory, as all processes of a server do. Sees only this user's processes. */
function hasSurvivors(cluster: string): boolean {
	// Without /proc, child processes are assumed to live.
	if (!existsSync("/proc/self/cwd")) return true;
	return readdirSync("/proc").some((name) => /^\d+$/.test(name) && worksIn(cluster, name));
}

function worksIn(cluster: string, pid: string): boolean {
	try {
		return samePath(readlinkSync(`/proc/${pid}/cwd`), cluster);
	} catch {
		return false;
	}
}

export function isServerRunning({ pid }: Postmaster, cluster: string): boolean {
	return servesCluster(pid, cluster);
}

/** Reads the file's lines: pid, data directory, start, port, socket directory, address, shared memory, state. */
function readPidFile(cluster: string): Postmaster | undefined {
	let text: string;
	try {
		text = readFileSync(join(cluster, "postmaster.pid"), "utf8");
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw error;
	}
	const lines = text.split("\n");
	const pid = Number(lines[0]);
	if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
	return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === "ready" };
}

function servesCluster(pid: number, cluster: string): boolean {
	if (!existsSync("/proc/self/cmdline")) {
		// Searches the text: `ps` separates arguments by spaces, and the path may contain spaces too.
		return listed(pid, "command").includes(` -D ${cluster} -`);
	}
	const args = commandLine(pid);
	const directory = args[args.indexOf("-D") + 1];
	return args.includes("-D") && directory !== undefined && samePath(directory, cluster);
}

/** Output of `ps` for a process; empty if there is no such process. */
function listed(pid: number, what: string): string {
	return Bun.spawnSync(["ps", "-ww", "-o", `${what}=`, "-p", String(pid)]).stdout.toString();
}

function commandLine(pid: number): string[] {
	try {
		return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
	} catch {
		return [];
	}
}

function samePath(a: string, b: string): boolean {
	try {
		return realpathSync(a) === realpathSync(b);
	} catch {
		return a === b;
	}
}
