import { readdirSync, readFileSync } from "node:fs";

/** Returns the running child processes of `parent`. */
export function childrenOf(parent: number): number[] {
	return readdirSync("/proc")
		.filter((name) => /^\d+$/.test(name))
		.map(Number)
		.filter((pid) => parentOf(pid) === parent);
}

export function isRunning(pid: number): boolean {
	return parentOf(pid) !== undefined;
}

/** Returns a process's resident memory, including memory that it shares with others. */
export function residentBytes(pid: number): number {
	return Number(/^Rss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1]) * 1024;
}

export function environmentOf(pid: number): Record<string, string> {
	const entries = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
	return Object.fromEntries(entries.map((entry) => [entry.split("=")[0], entry.slice(entry.indexOf("=") + 1)]));
}

export function childrenWithRole(parent: number, role: "gateway" | "console"): number[] {
	return childrenOf(parent).filter((pid) => {
		try {
			return environmentOf(pid).ROLE === role;
		} catch {
			return false;
		}
	});
}

/** Returns a process's parent; undefined if the process has ended. */
function parentOf(pid: number): number | undefined {
	try {
		const [state, parent] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop()?.split(" ") ?? [];
		return state === "Z" ? undefined : Number(parent);
	} catch {
		return undefined;
	}
}
