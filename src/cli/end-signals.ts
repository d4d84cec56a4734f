/** One Ctrl-C can arrive twice: from the terminal, and passed on by a script runner or a parent. */
const SAME_MS = 1000;

export type EndSignal = "SIGTERM" | "SIGINT";

/** Calls `end` at the first SIGTERM or SIGINT; a later one ends the process at once, and before it what `atOnce` ends. */
export function onEndSignal(end: (signal: EndSignal) => void, atOnce = () => {}): void {
	let firstAtMs: number | undefined;
	for (const signal of ["SIGTERM", "SIGINT"] as const) {
		process.on(signal, () => {
			if (firstAtMs === undefined) {
				firstAtMs = performance.now();
				end(signal);
			} else if (performance.now() - firstAtMs > SAME_MS) {
				atOnce();
				process.exit(1);
			}
		});
	}
}
