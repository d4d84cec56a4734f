/**
 * Where the bytes of files lie: encrypted parts by name. What is put is there for every instance, and survives the loss
 * of power, before `put` resolves. A name is given once and never written over.
 */
export interface BlobStore {
	/** As it stands in a file's record. */
	readonly name: string;
	/** May be repeated with the same bytes, and with no others: what is there of them by then may stay. */
	put(fileId: string, blob: string, bytes: Uint8Array): Promise<void>;
	/** The bytes from `start` to `end` (exclusive). Rejects where they are not all there: with BytesLost if that stays so. */
	read(fileId: string, blob: string, start: number, end: number): Promise<Uint8Array>;
	/** All blobs of a file, whether or not there are any. */
	removeFile(fileId: string): Promise<void>;
}

/** Bytes of a file are not where they were put, while their store is there: trying again changes nothing. */
export class BytesLost extends Error {
	override readonly name = "BytesLost" as const;
}
