import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { isatty } from "node:tty";

/** One Ctrl-C can arrive twice: from the terminal, and forwarded by a script runner or a parent. */
const SAME_MS = 1000;

export type EndSignal = "SIGTERM" | "SIGINT";

/**
 * Calls `end` at the first SIGTERM or SIGINT. A later signal runs `atOnce` and exits at once. A closed terminal counts
 * as Ctrl-C, except in a child, whose parent receives SIGHUP too. Must be called before other listeners for SIGHUP: a
 * listener undoes an inherited "ignore".
 */
export function onEndSignal(
	end: (signal: EndSignal) => void,
	{ atOnce = () => {}, isChild = false }: { atOnce?: () => void; isChild?: boolean } = {},
): void {
	const terminals = isChild || isIgnored("SIGHUP") ? [] : [0, 1, 2].filter((fd) => isatty(fd));
	let firstAtMs: number | undefined;
	function begin(signal: EndSignal): void {
		firstAtMs = performance.now();
		end(signal);
	}
	for (const signal of ["SIGTERM", "SIGINT"] as const) {
		process.on(signal, () => {
			if (firstAtMs === undefined) begin(signal);
			else if (performance.now() - firstAtMs > SAME_MS) {
				atOnce();
				process.exit(1);
			}
		});
	}
	// SIGHUP with the terminals still open, or without any, means a reload.
	process.on("SIGHUP", () => {
		if (firstAtMs === undefined && terminals.some((fd) => !isatty(fd))) begin("SIGINT");
	});
}

/** Whether the process was started with the signal ignored (`nohup`), which a listener would undo. Linux only. */
export function isIgnored(signal: "SIGTERM" | "SIGINT" | "SIGHUP"): boolean {
	try {
		const [, ignored = "0"] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
		return ((BigInt(`0x${ignored}`) >> BigInt(constants.signals[signal] - 1)) & 1n) === 1n;
	} catch {
		return false;
	}
}
