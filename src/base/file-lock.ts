import { closeSync, constants, openSync } from "node:fs";
import { libc } from "./libc.ts";

export interface FileLock {
	release(): void;
}

export interface SharedFileLock extends FileLock {
	/** Makes the lock exclusive. False if another process holds it; this holder has then lost its shared lock too. */
	tryExclusive(): boolean;
}

/** Milliseconds between attempts, because the system does not report when a lock becomes free. */
const POLL_MS = 25;
const LOCK_SH = 1;
const LOCK_EX = 2;
const LOCK_NB = 4;
const APPENDING = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/**
 * Takes flock(2) on the file at `path`, which is created if missing; undefined if another process holds the lock. The
 * kernel releases the lock when the holder dies, however it dies; a stopped (SIGSTOP) holder keeps it. Only such a
 * lock, not a pid file, keeps a second writer from a journal. Not for network file systems.
 */
export function tryFileLock(path: string): FileLock | undefined {
	const fd = lockedFile(path, LOCK_EX);
	return fd === undefined ? undefined : { release: releaseOnce(fd) };
}

/** Like `tryFileLock`, but waits up to `deadlineMs`; undefined after that. */
export async function waitForFileLock(path: string, deadlineMs: number): Promise<FileLock | undefined> {
	const giveUpAt = performance.now() + deadlineMs;
	for (;;) {
		const lock = tryFileLock(path);
		if (lock !== undefined || performance.now() > giveUpAt) return lock;
		await Bun.sleep(POLL_MS);
	}
}

/** Like `tryFileLock`, but users of this function share the lock. Undefined if a process holds it exclusively. */
export function trySharedFileLock(path: string): SharedFileLock | undefined {
	const fd = lockedFile(path, LOCK_SH);
	if (fd === undefined) return undefined;
	return { release: releaseOnce(fd), tryExclusive: () => libc().flock(fd, LOCK_EX | LOCK_NB) === 0 };
}

function lockedFile(path: string, kind: number): number | undefined {
	// O_NONBLOCK, because opening a pipe that another program put at this path would block.
	const fd = openSync(path, APPENDING, 0o600);
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
