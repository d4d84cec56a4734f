import { existsSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../base/process-alive.ts";

/** A running PostgreSQL server, as its `postmaster.pid` and the system describe it. */
export interface Postmaster {
	readonly pid: number;
	readonly port: number;
	/** False while it starts or stops. */
	readonly ready: boolean;
}

/**
 * The server that runs on this data directory; undefined if none does. A pid file can outlive its server, and its
 * number can belong to a stranger by now, another PostgreSQL too: only a process with this directory on its command
 * line counts. One that ended and was not reaped yet has no command line.
 */
export function findPostmaster(cluster: string): Postmaster | undefined {
	const file = readPidFile(cluster);
	return file !== undefined && servesCluster(file.pid, cluster) ? file : undefined;
}

/**
 * Takes away a pid file whose number belongs to a stranger: PostgreSQL refuses to start while that process lives. One
 * whose number belongs to nobody is PostgreSQL's own to judge, which also looks for children that survived.
 */
export function removeForeignPidFile(cluster: string): void {
	const file = readPidFile(cluster);
	if (file !== undefined && isAlive(file.pid) && !servesCluster(file.pid, cluster)) {
		rmSync(join(cluster, "postmaster.pid"), { force: true });
	}
}

export function isRunning({ pid }: Postmaster, cluster: string): boolean {
	return servesCluster(pid, cluster);
}

/** Lines: pid, data directory, start time, port, socket directory, address, shared memory, state. */
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
		// Words are parted by spaces here, which the path may have too.
		const listed = Bun.spawnSync(["ps", "-ww", "-o", "command=", "-p", String(pid)]).stdout.toString();
		return listed.includes(` -D ${cluster} -`);
	}
	const args = commandLine(pid);
	const directory = args[args.indexOf("-D") + 1];
	return args.includes("-D") && directory !== undefined && samePath(directory, cluster);
}

/** Empty if there is no such process. */
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
