import { readFileSync } from "node:fs";
import { constants } from "node:os";

/**
 * Whether the process was started with the signal ignored (`nohup`, `&` in a script); a listener would undo that. False
 * outside Linux.
 */
export function isIgnored(signal: "SIGTERM" | "SIGINT" | "SIGHUP"): boolean {
	try {
		const [, ignored = "0"] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
		return ((BigInt(`0x${ignored}`) >> BigInt(constants.signals[signal] - 1)) & 1n) === 1n;
	} catch {
		return false;
	}
}
