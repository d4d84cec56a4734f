/**
 * Loaded before a process that is measured (`bun --preload`): how long its event loop keeps a timer waiting. On SIGWINCH it
 * writes what it has seen since the last time to `LAG_DIR/<pid>.json` and begins anew.
 */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const STEP_MS = 5;
const folder = Bun.env.LAG_DIR;
let lags: number[] = [];
let expectedMs = performance.now() + STEP_MS;

function tick(): void {
	const nowMs = performance.now();
	lags.push(Math.max(0, nowMs - expectedMs));
	expectedMs = nowMs + STEP_MS;
	setTimeout(tick, STEP_MS).unref();
}

if (folder !== undefined) {
	setTimeout(tick, STEP_MS).unref();
	process.on("SIGWINCH", () => {
		const path = join(folder, `${process.pid}.json`);
		writeFileSync(`${path}.new`, JSON.stringify(lags));
		renameSync(`${path}.new`, path);
		lags = [];
	});
}
