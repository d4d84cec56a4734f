/**
 * Preloaded into an attacked process (`bun --preload`): measures the processor time of each event-loop step, which does
 * not depend on other load (on systems other than Linux: elapsed time). On SIGWINCH it writes the long steps since the
 * previous signal, in ms, to `STEPS_DIR/<pid>`.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = Bun.env.STEPS_DIR;
const schedule = `/proc/self/task/${process.pid}/schedstat`;
const spentMs = existsSync(schedule)
	? () => Number(readFileSync(schedule, "utf8").split(" ")[0]) / 1e6
	: () => performance.now();
/** Steps shorter than this are not recorded. */
const LONG_MS = 1;
let steps: number[] = [];
let lastMs = 0;

function tick(): void {
	const stepMs = spentMs() - lastMs;
	if (stepMs > LONG_MS) steps.push(stepMs);
	lastMs = spentMs();
	setTimeout(tick, 1).unref();
}

if (folder !== undefined) {
	lastMs = spentMs();
	setTimeout(tick, 1).unref();
	process.on("SIGWINCH", () => {
		const path = join(folder, String(process.pid));
		writeFileSync(`${path}.new`, JSON.stringify(steps));
		renameSync(`${path}.new`, path);
		steps = [];
	});
}
