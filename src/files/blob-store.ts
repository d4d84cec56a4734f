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
