import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { systemClock } from "../base/clock.ts";
import { newUuid } from "../base/id.ts";
import type { WorkFolder } from "../base/work-folder.ts";
import { openWorkFolder } from "../base/work-folder.ts";
import { openBucket, type S3Bucket } from "../files/bucket.ts";

/** Where archived days lie: a folder, or objects of a bucket under a prefix. */
export type ArchiveAddress = { readonly folder: string } | { readonly bucket: S3Bucket; readonly prefix: string };

/** An archive's files by name. A name is given once: what is there is never written over. */
export interface ArchivePlace {
	/** For people. */
	readonly name: string;
	names(): Promise<readonly string[]>;
	has(name: string): Promise<boolean>;
	/** A path of this machine to write a new file to; nobody takes it for an archived one. It is to be dropped in the end. */
	part(name: string): Promise<string>;
	/** Removes what was written there, if it is still there. */
	drop(part: string): void;
	/** A file that was written there appears under its name, whole or not at all, and survives the loss of power. */
	put(name: string, part: string): Promise<void>;
	/** Gives a path of this machine with what the archive has under a name, while `work` runs. */
	reading<Result>(name: string, work: (path: string) => Promise<Result>): Promise<Result>;
}

/** A day of many millions of requests is some hundred megabytes. */
const DEADLINE_MS = 30 * 60_000;
/** Where a bucket's files lie on their way: what a killed process left there is removed by the next one. */
const WORK_FOLDER = "tollgate-archive-";
/** What a killed process left of a file is no use to anybody after that. */
const PART_KEPT_MS = 86_400_000;

/** `signal`: a stop does not wait for what a bucket has not answered. */
export function openArchive(address: ArchiveAddress, signal?: AbortSignal, clock: Clock = systemClock): ArchivePlace {
	return "folder" in address ? inFolder(address.folder, clock) : inBucket(address, { signal, clock });
}

function inFolder(folder: string, clock: Clock): ArchivePlace {
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
): ArchivePlace {
	const { prefix } = address;
	const bucket = openBucket(deps, address.bucket, DEADLINE_MS);
	async function withFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
		const folder = openWorkFolder(WORK_FOLDER);
		try {
			return await work(folder.path);
		} finally {
			folder.remove();
		}
	}
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
		// What an interrupted upload left in parts is the service's to forget.
		put: (name, part) => bucket.put(`${prefix}${name}`, Bun.file(part)),
		reading: (name, work) =>
			withFolder(async (folder) => {
				const path = join(folder, name.replaceAll("/", "_"));
				await bucket.download(`${prefix}${name}`, path);
				return work(path);
			}),
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
