import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert } from "./assert.ts";
import { tryFileLock } from "./file-lock.ts";

/** A folder under the temporary one that is this process's until it is removed. */
export interface WorkFolder {
	readonly path: string;
	remove(): void;
}

/** Its lock tells who lives; one that has just been made may not be locked yet. */
const LOCK = "lock";
const YOUNG_MS = 60_000;

/** Makes one, and removes those of the same prefix that killed processes have left. `prefix` is for one purpose alone. */
export function openWorkFolder(prefix: string): WorkFolder {
	for (const name of readdirSync(tmpdir())) if (name.startsWith(prefix)) removeIfLeft(join(tmpdir(), name));
	const path = mkdtempSync(join(tmpdir(), prefix));
	const lock = tryFileLock(join(path, LOCK));
	assert(lock !== undefined, "nobody locks a folder that has just been made");
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
		// Somebody else's, or removed meanwhile.
	}
}
