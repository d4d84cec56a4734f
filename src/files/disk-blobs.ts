import { existsSync } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../base/assert.ts";
import { type BlobStore, BytesLost } from "./blob-store.ts";

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
