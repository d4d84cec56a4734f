import type { Clock } from "../base/clock.ts";
import { type BlobStore, BytesLost } from "./blob-store.ts";
import { openBucket, type S3Bucket } from "./bucket.ts";

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
			// Repeats until the list is empty: some services list a thousand keys without indicating that there are more.
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
