import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { S3Client } from "bun";
import type { Clock } from "../base/clock.ts";
import { systemClock, withDeadline } from "../base/clock.ts";
import { newUuid } from "../base/id.ts";
import type { WorkFolder } from "../base/work-folder.ts";
import { openWorkFolder } from "../base/work-folder.ts";
import type { S3Bucket } from "../files/s3-blobs.ts";

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
	return "folder" in address ? openFolder(address.folder, clock) : openBucket(address, { signal, clock });
}

function openFolder(folder: string, clock: Clock): ArchivePlace {
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

function openBucket(
	{ bucket, prefix }: { readonly bucket: S3Bucket; readonly prefix: string },
	{ clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal | undefined },
): ArchivePlace {
	const { endpoint, region, accessKeyId, secretAccessKey } = bucket;
	const client = new S3Client({
		bucket: bucket.bucket,
		accessKeyId,
		secretAccessKey,
		...(endpoint === null ? {} : { endpoint }),
		...(region === null ? {} : { region }),
	});
	const keyOf = (name: string) => `${prefix}${name}`;
	const late = () => new Error("the archive's storage did not answer in time");
	async function inTime<Result>(work: Promise<Result>): Promise<Result> {
		const stopped = Promise.withResolvers<never>();
		const stop = () => stopped.reject(signal?.reason);
		signal?.addEventListener("abort", stop);
		try {
			return await withDeadline(clock, Promise.race([work, stopped.promise]), DEADLINE_MS, late);
		} finally {
			signal?.removeEventListener("abort", stop);
		}
	}
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
		name: `s3://${bucket.bucket}/${prefix}`,
		async names() {
			const keys = new Set<string>();
			for (let startAfter: string | undefined; ; ) {
				const page = await inTime(client.list({ prefix, ...(startAfter === undefined ? {} : { startAfter }) }));
				for (const { key } of page.contents ?? []) {
					// Asked on, a page that comes again would do so for ever.
					if (!key.startsWith(prefix) || keys.has(key))
						throw new Error("the archive's storage lists what it was not asked for");
					keys.add(key);
				}
				const last = page.contents?.at(-1)?.key;
				if (page.isTruncated !== true || last === undefined) return [...keys].map((key) => key.slice(prefix.length));
				startAfter = last;
			}
		},
		has: (name) => inTime(client.exists(keyOf(name))),
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
		// An object appears when all of it has arrived; what an interrupted upload left in parts is the service's to forget.
		async put(name, part) {
			await inTime(client.write(keyOf(name), Bun.file(part)));
		},
		reading: (name, work) =>
			withFolder(async (folder) => {
				const path = join(folder, name.replaceAll("/", "_"));
				await inTime(Bun.write(path, client.file(keyOf(name))));
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
