/** Resource usage of processes from /proc, which does not depend on other load of the machine. */
import { readdirSync, readFileSync } from "node:fs";

/** Linux reports CPU time in hundredths of a second. */
const TICK_MICROS = 10_000;
const PAGE_BYTES = 4096;

/** User and system CPU time of the processes in microseconds, with all threads and ended children. */
export function cpuMicros(pids: readonly number[]): number {
	let ticks = 0;
	for (const pid of pids) for (const field of [11, 12, 13, 14]) ticks += Number(statOf(pid)[field]);
	return ticks * TICK_MICROS;
}

/** Resident memory of the processes in bytes. */
export function residentBytes(pids: readonly number[]): number {
	return pids.reduce((sum, pid) => sum + Number(statOf(pid)[21]) * PAGE_BYTES, 0);
}

/** Write system calls of all threads to files, pipes and event counters, without sends to sockets. */
export function writeCallsOf(pid: number): number {
	return numberIn(`/proc/${pid}/io`, /^syscw: (\d+)/m);
}

/** Voluntary context switches of the process's threads, without threads that have ended. */
export function sleepsOf(pid: number): number {
	return readdirSync(`/proc/${pid}/task`).reduce(
		(sum, thread) => sum + numberIn(`/proc/${pid}/task/${thread}/status`, /^voluntary_ctxt_switches:\s+(\d+)/m),
		0,
	);
}

function numberIn(path: string, pattern: RegExp): number {
	try {
		return Number(pattern.exec(readFileSync(path, "utf8"))?.[1] ?? 0);
	} catch {
		// The thread has ended.
		return 0;
	}
}

export function openFiles(pid: number): number {
	return readdirSync(`/proc/${pid}/fd`).length;
}

/** The process and all its descendants. */
export function processTree(root: number): number[] {
	const parents = new Map<number, number>();
	for (const name of readdirSync("/proc")) {
		if (!/^\d+$/.test(name)) continue;
		const stat = statOf(Number(name));
		if (stat.length > 0) parents.set(Number(name), Number(stat[1]));
	}
	const tree = [root];
	for (const pid of tree) for (const [child, parent] of parents) if (parent === pid) tree.push(child);
	return tree;
}

/** Fields of /proc/PID/stat after the name, starting with the state; empty if the process has ended. */
function statOf(pid: number): string[] {
	try {
		const text = readFileSync(`/proc/${pid}/stat`, "utf8");
		return text.slice(text.lastIndexOf(")") + 2).split(" ");
	} catch {
		return [];
	}
}
