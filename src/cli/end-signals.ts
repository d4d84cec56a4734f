import { isatty } from "node:tty";
import { isIgnored } from "./ignored-signal.ts";

/** One Ctrl-C can arrive twice: from the terminal, and passed on by a script runner or a parent. */
const SAME_MS = 1000;

export type EndSignal = "SIGTERM" | "SIGINT";

/**
 * Calls `end` at the first SIGTERM or SIGINT; a later one ends the process at once, and before it what `atOnce` ends. A
 * terminal that is closed counts as a Ctrl-C at it, since nobody could press one any more; not for a child, whose parent
 * hears of that too. Called before anybody listens for SIGHUP, which takes back that it was to be ignored.
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
	// Where they are still there, or were none, it asks for something else.
	process.on("SIGHUP", () => {
		if (firstAtMs === undefined && terminals.some((fd) => !isatty(fd))) begin("SIGINT");
	});
}
