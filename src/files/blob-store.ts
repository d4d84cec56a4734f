/**
 * Stores the encrypted parts of files by name. Once `put` resolves, every instance can read the blob, which survives a
 * power loss. A name is never reused for other bytes.
 */
export interface BlobStore {
	/** Name of the store, as in a file's record. */
	readonly name: string;
	/** Stores a blob. Repeatable with the same bytes only, since a partial earlier attempt may remain. */
	put(fileId: string, blob: string, bytes: Uint8Array): Promise<void>;
	/** Reads from `start` to `end` (exclusive). Rejects if bytes are missing; with BytesLost if they always will be. */
	read(fileId: string, blob: string, start: number, end: number): Promise<Uint8Array>;
	/** Deletes all blobs of a file; succeeds if there are none. */
	removeFile(fileId: string): Promise<void>;
}

/** Bytes of a file are missing although the store works, so retrying is useless. */
export class BytesLost extends Error {
	override readonly name = "BytesLost" as const;
}
