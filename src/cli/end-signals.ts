import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { isatty } from "node:tty";

/** A second signal within this time is the same request: a parent process may forward the terminal's Ctrl-C. */
const SAME_MS = 1000;

export type EndSignal = "SIGTERM" | "SIGINT";

/**
 * Calls `end` at the first SIGTERM or SIGINT; a second one runs `atOnce` and exits. A closed terminal counts as Ctrl-C,
 * except in a child process, whose parent gets SIGHUP too. Call this before other SIGHUP listeners are added: `nohup`
 * is then still detectable.
 */
export function onEndSignal(
	end: (signal: EndSignal) => void,
	{ atOnce = () => {}, isChild = false }: { atOnce?: () => void; isChild?: boolean } = {},
): void {
	const terminals = isChild || isSignalIgnored("SIGHUP") ? [] : [0, 1, 2].filter((fd) => isatty(fd));
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
	// If a terminal was closed, SIGHUP ends the process; otherwise another listener reloads the catalogue.
	process.on("SIGHUP", () => {
		if (firstAtMs === undefined && terminals.some((fd) => !isatty(fd))) begin("SIGINT");
	});
}

/** True if the process was started with this signal ignored, as `nohup` does. Linux only. A listener ends that. */
export function isSignalIgnored(signal: "SIGTERM" | "SIGINT" | "SIGHUP"): boolean {
	try {
		const [, ignored = "0"] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
		return ((BigInt(`0x${ignored}`) >> BigInt(constants.signals[signal] - 1)) & 1n) === 1n;
	} catch {
		return false;
	}
}
