import {
	accessSync,
	constants,
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	rmSync,
	statfsSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findPostmaster } from "../../src/db/postmaster.ts";

/** Linux' folder in memory, which may be too small in a container. */
const MEMORY = "/dev/shm";
/** A run needs half of it at most; the rest is for parallel runs and other programs. */
const ROOM_BYTES_MIN = 1024 ** 3;
const PREFIX = "tollgate-test-";
/** Names the owner folder: the memory folder is removed after it. */
const OWNER = "owner";

/**
 * A folder in memory of this user for the folder `owner`, reused by the next run; undefined without such memory or
 * room.
 */
export function memoryFolder(owner: string, memory = MEMORY): string | undefined {
	try {
		accessSync(memory, constants.W_OK | constants.X_OK);
	} catch {
		return undefined;
	}
	sweepMemory(memory);
	const folder = join(memory, `${PREFIX}${process.getuid?.() ?? 0}-${Bun.hash(owner).toString(36)}`);
	if (existsSync(join(folder, OWNER))) return folder;
	const { bavail, bsize } = statfsSync(memory);
	if (bavail * bsize < ROOM_BYTES_MIN) return undefined;
	mkdirSync(folder, { recursive: true, mode: 0o755 });
	writeFileSync(join(folder, OWNER), owner);
	return folder;
}

/** A place for data of servers that a test starts: in memory if possible, else the temporary folder. */
export function quickFolder(): string {
	return memoryFolder(tmpdir()) ?? tmpdir();
}

/** Removes folders without an owner. */
export function sweepMemory(memory = MEMORY): void {
	if (!existsSync(memory)) return;
	for (const name of readdirSync(memory)) {
		if (!name.startsWith(PREFIX)) continue;
		const folder = join(memory, name);
		try {
			// A folder under construction has no owner yet.
			const isLeft = !existsSync(readFileSync(join(folder, OWNER), "utf8"));
			const isServed = findPostmaster(join(folder, "postgres", "cluster")) !== undefined;
			if (isLeft && !isServed) rmSync(folder, { recursive: true, force: true });
		} catch {
			// It belongs to another user, or another process is removing it.
		}
	}
}
