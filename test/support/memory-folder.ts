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

/** Linux' folder in memory, which a container may have too small. */
const MEMORY = "/dev/shm";
/** A run needs half of it at most; the rest is for other runs and for whoever else has files there. */
const ROOM_BYTES_MIN = 1024 ** 3;
const PREFIX = "tollgate-test-";
/** Says whose folder it is: it goes when that does. */
const OWNER = "owner";

/**
 * A folder in memory that belongs to this user and to the folder `owner`, and is found again by the next run; undefined
 * where there is none, or no room.
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

/** Where files of servers that a test starts itself are made with little work: in memory, or where all others are. */
export function quickFolder(): string {
	return memoryFolder(tmpdir()) ?? tmpdir();
}

/** Removes those whose owners are gone. */
export function sweepMemory(memory = MEMORY): void {
	if (!existsSync(memory)) return;
	for (const name of readdirSync(memory)) {
		if (!name.startsWith(PREFIX)) continue;
		const folder = join(memory, name);
		try {
			// One that is being made has no owner yet.
			const isLeft = !existsSync(readFileSync(join(folder, OWNER), "utf8"));
			const isServed = findPostmaster(join(folder, "postgres", "cluster")) !== undefined;
			if (isLeft && !isServed) rmSync(folder, { recursive: true, force: true });
		} catch {
			// Another user's, or somebody else removes it right now.
		}
	}
}
