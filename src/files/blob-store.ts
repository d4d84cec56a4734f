/**
 * Stores the encrypted parts of files by name. When `put` resolves, the blob is visible to every instance and survives
 * a power loss. A name is never reused for other bytes.
 */
export interface BlobStore {
	/** As in a file's record. */
	readonly name: string;
	/** May be repeated with the same bytes only; a partial earlier attempt may stay. */
	put(fileId: string, blob: string, bytes: Uint8Array): Promise<void>;
	/**
	 * The bytes from `start` to `end` (exclusive). Rejects if they are not all there: with BytesLost if that is
	 * permanent.
	 */
	read(fileId: string, blob: string, start: number, end: number): Promise<Uint8Array>;
	/** Deletes all blobs of a file; succeeds if there are none. */
	removeFile(fileId: string): Promise<void>;
}

/** Bytes of a file are missing while their store answers: retrying changes nothing. */
export class BytesLost extends Error {
	override readonly name = "BytesLost" as const;
}
