import { S3Client } from "bun";
import type { Clock } from "../base/clock.ts";
import { withDeadline } from "../base/clock.ts";
import { type BlobStore, BytesLost } from "./blob-store.ts";

/** A bucket of an S3-compatible service, and who may write to it. */
export interface S3Bucket {
	/** Null: Amazon's own for the region. */
	readonly endpoint: string | null;
	readonly bucket: string;
	readonly region: string | null;
	readonly accessKeyId: string;
	readonly secretAccessKey: string;
}

/** A part is some megabytes: whoever takes longer for it does not answer any more. */
const DEADLINE_MS = 60_000;
const PREFIX = "tollgate";

/** Blobs as objects `tollgate/<file>/<blob>` of a bucket, by the runtime's own client. */
export function createS3Blobs(deps: { clock: Clock }, options: S3Bucket): BlobStore {
	const { endpoint, bucket, region, accessKeyId, secretAccessKey } = options;
	const client = new S3Client({
		bucket,
		accessKeyId,
		secretAccessKey,
		...(endpoint === null ? {} : { endpoint }),
		...(region === null ? {} : { region }),
	});
	const inTime = <T>(work: Promise<T>) =>
		withDeadline(deps.clock, work, DEADLINE_MS, () => new Error("the object storage did not answer in time"));
	/** A proxy without a way to the storage says 404 as well, or something shorter: only its list says what it has. */
	async function isListed(key: string, bytes: number): Promise<boolean> {
		const { contents = [] } = await inTime(client.list({ prefix: key, maxKeys: 1 }));
		return contents.some((object) => object.key === key && (object.size ?? bytes) >= bytes);
	}
	const keyOf = (fileId: string, blob: string) => `${PREFIX}/${fileId}/${blob}`;

	return {
		name: "s3",
		async put(fileId, blob, bytes) {
			await inTime(client.write(keyOf(fileId, blob), bytes as Uint8Array<ArrayBuffer>));
		},
		async read(fileId, blob, start, end) {
			const key = keyOf(fileId, blob);
			const bytes = await inTime(client.file(key).slice(start, end).bytes()).catch(noneIfGone);
			if (bytes?.length === end - start) return bytes;
			if (await isListed(key, end)) throw new Error("what the object storage answered is not what was asked for");
			throw new BytesLost("an object in the storage is gone, or shorter than it was");
		},
		async removeFile(fileId) {
			const prefix = `${PREFIX}/${fileId}/`;
			const deleted = new Set<string>();
			// A page holds up to a thousand; what is deleted is not on the next one.
			for (;;) {
				const { contents = [] } = await inTime(client.list({ prefix }));
				if (contents.length === 0) return;
				for (const { key } of contents) {
					if (!key.startsWith(prefix)) throw new Error("the object storage lists what it was not asked for");
					// Asked again at once it would say the same, perhaps for ever.
					if (deleted.has(key)) throw new Error("the object storage still lists what was deleted");
					deleted.add(key);
					await inTime(client.delete(key));
				}
			}
		},
	};
}

/** Of a bucket that is not there nothing is known. */
function noneIfGone(error: unknown): undefined {
	if ((error as { code?: unknown }).code !== "NoSuchKey") throw error;
}
