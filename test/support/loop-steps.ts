/**
 * Loaded before a process that is attacked (`bun --preload`, Linux): how much of the processor's time each step of its event
 * loop took, which a busy machine does not lengthen. On SIGWINCH it writes the longest since the last time, in ms, to
 * `STEPS_DIR/<pid>` and begins anew.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = Bun.env.STEPS_DIR;
const spentMs = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
let longestMs = 0;
let lastMs = 0;

function tick(): void {
	longestMs = Math.max(longestMs, spentMs() - lastMs);
	lastMs = spentMs();
	setTimeout(tick, 1).unref();
}

if (folder !== undefined) {
	lastMs = spentMs();
	setTimeout(tick, 1).unref();
	process.on("SIGWINCH", () => {
		const path = join(folder, String(process.pid));
		writeFileSync(`${path}.new`, String(longestMs));
		renameSync(`${path}.new`, path);
		longestMs = 0;
	});
}
