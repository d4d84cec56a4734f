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

/** Linux' file system in memory; it may be small in a container. */
const MEMORY = "/dev/shm";
/** Minimum free memory for using the folder: a run needs half of it, and other programs need the rest. */
const ROOM_BYTES_MIN = 1024 ** 3;
const PREFIX = "tollgate-test-";
/** File that names the owner's folder. Once that folder does not exist any more, the memory folder is removed. */
const OWNER = "owner";

/** A folder in memory that belongs to the folder `owner`, whose next run reuses it; undefined if memory is short. */
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

/** Returns the folder for data of servers that a test starts: in memory if possible, else the temporary folder. */
export function quickFolder(): string {
	return memoryFolder(tmpdir()) ?? tmpdir();
}

/** Removes memory folders whose owner's folder does not exist any more. */
export function sweepMemory(memory = MEMORY): void {
	if (!existsSync(memory)) return;
	for (const name of readdirSync(memory)) {
		if (!name.startsWith(PREFIX)) continue;
		const folder = join(memory, name);
		try {
			// A folder without an owner file is just being created, so it stays.
			const isLeft = !existsSync(readFileSync(join(folder, OWNER), "utf8"));
			const isServed = findPostmaster(join(folder, "postgres", "cluster")) !== undefined;
			if (isLeft && !isServed) rmSync(folder, { recursive: true, force: true });
		} catch {
			// The folder belongs to another user, or another process is removing it.
		}
	}
}
