/**
 * Stores the encrypted parts of files by name. Once `put` resolves, every instance can read the blob, and it survives a
 * power loss. A name is never used again for other bytes.
 */
export interface BlobStore {
	/** Name of the store, as in a file's record. */
	readonly name: string;
	/** Stores a blob. May be repeated, but only with the same bytes: a part of an earlier attempt may remain. */
	put(fileId: string, blob: string, bytes: Uint8Array): Promise<void>;
	/** Reads from `start` to before `end`. Rejects if bytes are missing; with BytesLost if they will not come back. */
	read(fileId: string, blob: string, start: number, end: number): Promise<Uint8Array>;
	/** Deletes all blobs of a file; succeeds if there are none. */
	removeFile(fileId: string): Promise<void>;
}

/** Thrown if bytes of a file are missing although the store works: a retry is useless. */
export class BytesLost extends Error {
	override readonly name = "BytesLost" as const;
}
