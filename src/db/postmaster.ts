import fs, { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../base/fault.ts";
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

export interface ServerOwner {
	readonly name: string;
	readonly uid: number;
	readonly gid: number;
}

/**
 * User that runs the server, because PostgreSQL refuses to run as root: the cluster's owner, else `postgres`, else the
 * system's unprivileged user. Undefined if this process is not root. Fault service_unavailable without such a user.
 */
export function findServerOwner(cluster: string): ServerOwner | undefined {
	if (process.getuid?.() !== 0) return undefined;
	const users = systemUsers();
	const { uid, gid } = fs.statSync(cluster, { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 };
	if (uid !== 0) return { name: users.find((user) => user.uid === uid)?.name ?? String(uid), uid, gid };
	const owner = users.find(({ name }) => name === "postgres") ?? users.find(({ name }) => name === "nobody");
	if (owner === undefined)
		throw new Fault(
			"service_unavailable",
			"PostgreSQL cannot run as root and there is no user `postgres` or `nobody`: set DATABASE_URL.",
		);
	return owner;
}

function systemUsers(): ServerOwner[] {
	const lines = fs.readFileSync("/etc/passwd", "utf8").split("\n");
	return lines.map((line) => {
		const [name = "", , uid, gid] = line.split(":");
		return { name, uid: Number(uid), gid: Number(gid) };
	});
}

/** Gives a folder that root created or restored to the server's user. Symbolic links are changed, not their targets. */
export function changeOwner(owner: ServerOwner | undefined, path: string): void {
	if (owner === undefined) return;
	const found = fs.lstatSync(path);
	if (found.uid === owner.uid) return;
	if (found.isDirectory()) for (const name of fs.readdirSync(path)) changeOwner(owner, join(path, name));
	fs.lchownSync(path, owner.uid, owner.gid);
}
