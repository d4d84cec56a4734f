import { existsSync } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { Statements } from "../db/statements.ts";
import { openBucket, type S3Bucket } from "./bucket.ts";

/**
 * Stores the encrypted parts of files by name. Once `put` resolves, every instance can read the blob, and it survives a
 * power loss. A name is never reused for other bytes.
 */
export interface BlobStore {
	/** Name of the store, as stored in a file's record. */
	readonly name: string;
	/** Stores a blob. May be repeated, but only with the same bytes, because an earlier attempt may have stored some. */
	put(fileId: string, blob: string, bytes: Uint8Array): Promise<void>;
	/** Reads from `start` to before `end`. Rejects if bytes are missing; with BytesLost if they are lost for good. */
	read(fileId: string, blob: string, start: number, end: number): Promise<Uint8Array>;
	/** Deletes all blobs of a file; succeeds if there are none. */
	removeFile(fileId: string): Promise<void>;
}

/** Thrown if bytes of a file are missing although the store works, so that a retry is useless. */
export class BytesLost extends Error {
	override readonly name = "BytesLost" as const;
}

const OWNER_ONLY_FOLDER = 0o700;
const OWNER_ONLY = 0o600;

/** Stores blobs as files in a folder, for instances on the same machine. */
export function createDiskBlobs(options: { folder: string }): BlobStore {
	const folderOf = (fileId: string) => {
		assert(/^[a-z0-9_]+$/.test(fileId), "a file's id is of our making");
		return join(options.folder, fileId);
	};

	return {
		name: "disk",
		async put(fileId, blob, bytes) {
			const folder = folderOf(fileId);
			await mkdir(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
			await withFile(join(folder, blob), "w", async (file) => {
				await file.writeFile(bytes);
				await file.sync();
			});
			// Syncs both folders to disk, so that the new names survive a power loss.
			for (const changed of [folder, options.folder]) await withFile(changed, "r", (file) => file.sync());
		},
		async read(fileId, blob, start, end) {
			try {
				return await withFile(join(folderOf(fileId), blob), "r", (file) => bytesOf(file, start, end));
			} catch (error) {
				// A missing folder may be a disk that is not mounted, so the bytes do not count as lost.
				if ((error as { code?: unknown }).code !== "ENOENT" || !existsSync(options.folder)) throw error;
				throw new BytesLost("a blob on the disk is gone", { cause: error });
			}
		},
		async removeFile(fileId) {
			await rm(folderOf(fileId), { recursive: true, force: true });
		},
	};
}

type OpenFile = Awaited<ReturnType<typeof open>>;

async function bytesOf(file: OpenFile, start: number, end: number): Promise<Uint8Array> {
	const bytes = Buffer.allocUnsafe(end - start);
	let read = 0;
	while (read < bytes.length) {
		const { bytesRead } = await file.read(bytes, read, bytes.length - read, start + read);
		if (bytesRead === 0) throw new BytesLost("a blob on the disk is shorter than it was");
		read += bytesRead;
	}
	return bytes;
}

async function withFile<T>(path: string, flags: "r" | "w", work: (file: OpenFile) => Promise<T>): Promise<T> {
	const file = await open(path, flags, OWNER_ONLY);
	try {
		return await work(file);
	} finally {
		await file.close();
	}
}

/** Bytes per row. A statement must be short even on a slow connection. */
const PIECE_BYTES = 256 * 1024;

/**
 * Stores blobs in a table, for instances that share only the database. `statements` should be a separate client, so
 * that other queries need not wait for megabytes.
 */
export const createPostgresBlobs = ({ statements }: { statements: Statements }): BlobStore => ({
	name: "postgres",
	async put(fileId, blob, bytes) {
		for (let piece = 0; piece * PIECE_BYTES < bytes.length; piece += 1) {
			const part = bytes.subarray(piece * PIECE_BYTES, (piece + 1) * PIECE_BYTES);
			await statements`
					insert into stored_blob (file_id, name, piece, bytes) values (${fileId}, ${blob}, ${piece}, ${part})
					on conflict do nothing`;
		}
	},
	async read(fileId, blob, start, end) {
		const found: Uint8Array[] = [];
		for (let piece = Math.floor(start / PIECE_BYTES); piece * PIECE_BYTES < end; piece += 1) {
			const first = piece * PIECE_BYTES;
			const from = Math.max(start - first, 0);
			const length = Math.min(end - first, PIECE_BYTES) - from;
			const [row] = await statements<{ bytes: Uint8Array }>`
					select substring(bytes from ${from + 1}::int for ${length}::int) as bytes from stored_blob
					where file_id = ${fileId} and name = ${blob} and piece = ${piece}`;
			if (row?.bytes.length !== length) throw new BytesLost("a blob in the database is shorter than it was");
			found.push(row.bytes);
		}
		return Buffer.concat(found);
	},
	async removeFile(fileId) {
		await statements`delete from stored_blob where file_id = ${fileId}`;
	},
});

/** Deadline for transferring one part of some megabytes. */
const DEADLINE_MS = 60_000;
const PREFIX = "tollgate";

/** Stores blobs as objects `tollgate/<file>/<blob>` of a bucket. */
export function createS3Blobs(deps: { clock: Clock }, options: S3Bucket): BlobStore {
	const bucket = openBucket(deps, options, DEADLINE_MS);
	const keyOf = (fileId: string, blob: string) => `${PREFIX}/${fileId}/${blob}`;

	return {
		name: "s3",
		put: (fileId, blob, bytes) => bucket.put(keyOf(fileId, blob), bytes),
		async read(fileId, blob, start, end) {
			const key = keyOf(fileId, blob);
			const bytes = await bucket.read(key, start, end);
			if (bytes?.length === end - start) return bytes;
			if (await bucket.isListed(key, end))
				throw new Error("what the object storage answered is not what was asked for");
			throw new BytesLost("an object in the storage is gone, or shorter than it was");
		},
		async removeFile(fileId) {
			const deleted = new Set<string>();
			// Repeats until the list is empty: some services list only a thousand keys and do not say so.
			for (;;) {
				const keys = await bucket.keys(`${PREFIX}/${fileId}/`);
				if (keys.length === 0) return;
				for (const key of keys) {
					if (deleted.has(key)) throw new Error("the object storage still lists what was deleted");
					deleted.add(key);
					await bucket.delete(key);
				}
			}
		},
	};
}
