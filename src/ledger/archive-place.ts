import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../base/clock.ts";
import { newUuid } from "../base/id.ts";
import { openWorkFolder, type WorkFolder } from "../base/work-folder.ts";
import { openBucket, type S3Bucket } from "../files/bucket.ts";

export type ArchiveAddress = { readonly folder: string } | { readonly bucket: S3Bucket; readonly prefix: string };

/** Files of an archive by name. Files are never overwritten. */
export interface ArchiveStorage {
	readonly name: string;
	names(): Promise<readonly string[]>;
	has(name: string): Promise<boolean>;
	/** Returns a local path for a new file. The caller must `drop` the path afterwards, also after a failure. */
	part(name: string): Promise<string>;
	drop(part: string): void;
	/** Publishes the unfinished file under its name, atomically; it survives a power loss. */
	put(name: string, part: string): Promise<void>;
	/** Runs `work` with a local path to the named file. */
	reading<Result>(name: string, work: (path: string) => Promise<Result>): Promise<Result>;
}

/** Deadline of an upload or download: a day with millions of requests has some hundred megabytes. */
const DEADLINE_MS = 30 * 60_000;
/** Prefix of temporary folders with copies of a bucket's files. A start deletes those of processes that were killed. */
const WORK_FOLDER = "tollgate-archive-";
/** Unfinished files older than this belong to a killed process and are deleted. */
const PART_KEPT_MS = 86_400_000;

/** Opens the archive. `signal` aborts calls to a bucket that does not respond. */
export function openArchive(address: ArchiveAddress, signal?: AbortSignal, clock: Clock = systemClock): ArchiveStorage {
	return "folder" in address ? inFolder(address.folder, clock) : inBucket(address, { signal, clock });
}

function inFolder(folder: string, clock: Clock): ArchiveStorage {
	const pathOf = (name: string) => join(folder, name);
	return {
		name: folder,
		names: () => readdir(folder),
		has: async (name) => statSync(pathOf(name), { throwIfNoEntry: false }) !== undefined,
		async part(name) {
			await mkdir(folder, { recursive: true });
			for (const old of (await readdir(folder)).filter((other) => other.endsWith(".part"))) {
				const written = statSync(pathOf(old), { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
				if (written < clock.wallMs() - PART_KEPT_MS) rmSync(pathOf(old), { force: true });
			}
			return pathOf(`${name}.${newUuid()}.part`);
		},
		drop: (part) => rmSync(part, { force: true }),
		async put(name, part) {
			syncPath(part, "r+");
			renameSync(part, pathOf(name));
			syncPath(folder, "r");
		},
		reading: (name, work) => work(pathOf(name)),
	};
}

function inBucket(
	address: { readonly bucket: S3Bucket; readonly prefix: string },
	deps: { readonly clock: Clock; readonly signal: AbortSignal | undefined },
): ArchiveStorage {
	const { prefix } = address;
	const bucket = openBucket(deps, address.bucket, DEADLINE_MS);
	const parts = new Map<string, WorkFolder>();
	return {
		name: `s3://${address.bucket.bucket}/${prefix}`,
		names: async () => (await bucket.keys(prefix)).map((key) => key.slice(prefix.length)),
		has: (name) => bucket.exists(`${prefix}${name}`),
		async part(name) {
			const folder = openWorkFolder(WORK_FOLDER);
			const part = join(folder.path, name);
			parts.set(part, folder);
			return part;
		},
		drop(part) {
			parts.get(part)?.remove();
			parts.delete(part);
		},
		// Interrupted uploads need no clean-up here: the storage service deletes their parts.
		put: (name, part) => bucket.put(`${prefix}${name}`, Bun.file(part)),
		async reading(name, work) {
			const folder = openWorkFolder(WORK_FOLDER);
			try {
				const path = join(folder.path, name.replaceAll("/", "_"));
				await bucket.download(`${prefix}${name}`, path);
				return await work(path);
			} finally {
				folder.remove();
			}
		},
	};
}

function syncPath(path: string, flags: "r" | "r+"): void {
	const file = openSync(path, flags);
	try {
		fsyncSync(file);
	} finally {
		closeSync(file);
	}
}
