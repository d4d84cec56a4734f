import { dlopen, FFIType } from "bun:ffi";
import { closeSync, openSync } from "node:fs";

export interface FileLock {
	release(): void;
}

const LOCK_EX = 2;
const LOCK_NB = 4;

/**
 * Takes flock(2) on the file at `path`, which is made if missing; undefined if another process holds it.
 * The kernel frees it when the holder dies, however it dies, and a stopped (SIGSTOP) holder keeps it: that is why it
 * and no pid file decides whether the owner of a journal may still write to it. Not for network file systems.
 */
export function tryFileLock(path: string): FileLock | undefined {
	const fd = openSync(path, "a", 0o600);
	if (libc().flock(fd, LOCK_EX | LOCK_NB) !== 0) {
		closeSync(fd);
		return undefined;
	}
	let held = true;
	return {
		release() {
			if (!held) return;
			held = false;
			closeSync(fd);
		},
	};
}

function libc(): { flock: (fd: number, operation: number) => number } {
	const names =
		process.platform === "darwin"
			? ["libSystem.B.dylib"]
			: ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
	let last: unknown;
	for (const name of names) {
		try {
			return dlopen(name, { flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 } }).symbols;
		} catch (error) {
			last = error;
		}
	}
	throw new Error("this system's C library was not found", { cause: last });
}
