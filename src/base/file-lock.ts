import { dlopen, FFIType } from "bun:ffi";
import { closeSync, openSync } from "node:fs";

export interface FileLock {
	release(): void;
}

/** Held together with others. */
export interface SharedFileLock extends FileLock {
	/** True if nobody else held it: then nobody can, until it is released. After false it is not held any more. */
	tryExclusive(): boolean;
}

interface Libc {
	readonly flock: (fd: number, operation: number) => number;
}

/** Nobody is told when a lock is free. */
const POLL_MS = 25;
const LOCK_SH = 1;
const LOCK_EX = 2;
const LOCK_NB = 4;

/**
 * Takes flock(2) on the file at `path`, which is made if missing; undefined if another process holds it.
 * The kernel frees it when the holder dies, however it dies, and a stopped (SIGSTOP) holder keeps it: that is why it
 * and no pid file decides whether the owner of a journal may still write to it. Not for network file systems.
 */
export function tryFileLock(path: string): FileLock | undefined {
	const fd = lockedFile(path, LOCK_EX);
	return fd === undefined ? undefined : { release: releaseOnce(fd) };
}

/** As `tryFileLock`, waiting for the holder; undefined if that takes longer than `deadlineMs`. */
export async function waitForFileLock(path: string, deadlineMs: number): Promise<FileLock | undefined> {
	const giveUpAt = performance.now() + deadlineMs;
	for (;;) {
		const lock = tryFileLock(path);
		if (lock !== undefined || performance.now() > giveUpAt) return lock;
		await Bun.sleep(POLL_MS);
	}
}

/** As `tryFileLock`, shared with other holders of this kind; undefined if one holds it alone. */
export function trySharedFileLock(path: string): SharedFileLock | undefined {
	const fd = lockedFile(path, LOCK_SH);
	if (fd === undefined) return undefined;
	return { release: releaseOnce(fd), tryExclusive: () => libc().flock(fd, LOCK_EX | LOCK_NB) === 0 };
}

function lockedFile(path: string, kind: number): number | undefined {
	const fd = openSync(path, "a", 0o600);
	if (libc().flock(fd, kind | LOCK_NB) === 0) return fd;
	closeSync(fd);
	return undefined;
}

function releaseOnce(fd: number): () => void {
	let held = true;
	return () => {
		if (!held) return;
		held = false;
		closeSync(fd);
	};
}

/** Opened once: each `dlopen` compiles its call anew and keeps 2.6 KB for ever, and locks are tried every few seconds. */
let opened: Libc | undefined;

function libc(): Libc {
	opened ??= openLibc();
	return opened;
}

function openLibc(): Libc {
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
