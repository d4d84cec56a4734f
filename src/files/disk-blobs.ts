import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../base/assert.ts";
import type { BlobStore } from "./blob-store.ts";

const OWNER_ONLY_FOLDER = 0o700;
const OWNER_ONLY = 0o600;

/** Blobs as files in a folder: for instances of one machine. */
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
			// Its name, and that of the folder.
			for (const changed of [folder, options.folder]) await withFile(changed, "r", (file) => file.sync());
		},
		read: (fileId, blob, start, end) =>
			withFile(join(folderOf(fileId), blob), "r", async (file) => {
				const bytes = Buffer.allocUnsafe(end - start);
				let read = 0;
				while (read < bytes.length) {
					const { bytesRead } = await file.read(bytes, read, bytes.length - read, start + read);
					if (bytesRead === 0) throw new Error("a blob on the disk is shorter than it was");
					read += bytesRead;
				}
				return bytes;
			}),
		async removeFile(fileId) {
			await rm(folderOf(fileId), { recursive: true, force: true });
		},
	};
}

async function withFile<T>(
	path: string,
	flags: "r" | "w",
	work: (file: Awaited<ReturnType<typeof open>>) => Promise<T>,
): Promise<T> {
	const file = await open(path, flags, OWNER_ONLY);
	try {
		return await work(file);
	} finally {
		await file.close();
	}
}
