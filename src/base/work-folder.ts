import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert } from "./assert.ts";
import { tryFileLock } from "./file-lock.ts";

export type WorkFolder = ReturnType<typeof openWorkFolder>;

/** Name of the lock file that its owner holds while it runs. A new folder lacks the file for a moment. */
const LOCK = "lock";
const YOUNG_MS = 60_000;

/**
 * Creates a temporary folder for this process, and deletes folders with the same prefix that killed processes left.
 * Each prefix must have only one purpose.
 */
export function openWorkFolder(prefix: string) {
	for (const name of readdirSync(tmpdir())) if (name.startsWith(prefix)) removeIfLeft(join(tmpdir(), name));
	const path = mkdtempSync(join(tmpdir(), prefix));
	const lock = tryFileLock(join(path, LOCK));
	assert(lock !== undefined, "a new folder has no lock");
	return {
		path,
		remove() {
			rmSync(path, { recursive: true, force: true });
			lock.release();
		},
	};
}

function removeIfLeft(path: string): void {
	try {
		if (statSync(path).mtimeMs > Date.now() - YOUNG_MS) return;
		const lock = tryFileLock(join(path, LOCK));
		if (lock === undefined) return;
		rmSync(path, { recursive: true, force: true });
		lock.release();
	} catch {
		// Ignored: the folder belongs to another user or is already deleted.
	}
}
