import { randomBytes } from "node:crypto";
import { Fault } from "../base/fault.ts";
import type { BlobStore } from "./blob-store.ts";
import type { FileBooks } from "./file-books.ts";
import type { FileCipher } from "./file-cipher.ts";
import type { FileRecord } from "./file-record.ts";

export type FileWriter = ReturnType<typeof createFileWriter>;

/** Size of a part. Sealing a part takes three times as much memory. */
export const PART_BYTES = 2 * 1024 * 1024;
const BLOB_NAME_BYTES = 8;

interface PendingPart {
	readonly bytes: number;
	readonly blob: string;
	/** Encrypted only once: another encryption gives other bytes, and a blob mixed from both could not be decrypted. */
	readonly sealedBytes: Uint8Array;
	isStored: boolean;
}

/**
 * Writes a file. Collects bytes in memory until `seal` stores them as a part; a crash loses collected bytes. A file has
 * one writer: of two writers, the slower one fails.
 */
export function createFileWriter(
	deps: { readonly books: FileBooks; readonly blobs: BlobStore; readonly cipher: FileCipher },
	file: Pick<FileRecord, "id" | "bytes"> & { readonly parts: number },
) {
	const { books, blobs, cipher } = deps;
	const { id } = file;
	let sealed = file.parts;
	let sealedBytes = file.bytes;
	const gathered: Uint8Array[] = [];
	let gatheredBytes = 0;
	/** Kept after a failure, because the blob may have been stored, and the part even recorded. */
	let pending: PendingPart | undefined;
	let sealing: Promise<unknown> = Promise.resolve();

	async function sealPending(part: PendingPart): Promise<void> {
		if (!part.isStored) await blobs.put(id, part.blob, part.sealedBytes);
		part.isStored = true;
		try {
			await books.seal(id, { number: sealed, bytes: part.bytes, blob: part.blob });
		} catch (error) {
			// The file was deleted during `put`. Only this writer knows the blob, so it must delete the blob.
			if (error instanceof Fault && !(await books.isKept(id))) await blobs.removeFile(id);
			throw error;
		}
		sealed += 1;
		sealedBytes += part.bytes;
		pending = undefined;
	}

	async function sealNow(): Promise<number> {
		if (pending !== undefined) await sealPending(pending);
		if (gatheredBytes > 0) {
			const blob = `${sealed}-${randomBytes(BLOB_NAME_BYTES).toString("hex")}`;
			const bytes = Buffer.concat(gathered.splice(0));
			pending = { bytes: bytes.length, blob, sealedBytes: cipher.seal(id, sealed, bytes), isStored: false };
			gatheredBytes = 0;
			await sealPending(pending);
		}
		return sealed;
	}

	/**
	 * Seals everything that was written; resolves with the number of recorded parts. Retry after a failure, but not after
	 * Fault conflict (another writer, file deleted, account's space full); after overloaded (total space full) retry
	 * later.
	 */
	function seal(): Promise<number> {
		const mine = sealing.then(sealNow);
		sealing = mine.catch(() => {});
		return mine;
	}

	return {
		fileId: id,
		/** Number of recorded parts, including those from before a crash; also the number of the next part. */
		parts: () => sealed,
		bytes: () => sealedBytes,
		/** Adds bytes without copying them. True once they suffice for a part: then call `seal` before writing more. */
		write(bytes: string | Uint8Array): boolean {
			const piece = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
			gathered.push(piece);
			gatheredBytes += piece.length;
			return gatheredBytes >= PART_BYTES;
		},
		seal,
		/**
		 * Fences an earlier writer, which can then seal no more parts, by sealing an empty part. Resolves with the numbers
		 * of all empty parts. Call it before any write. Faults as in `seal`.
		 */
		async fence(): Promise<ReadonlySet<number>> {
			for (;;) {
				const part = { number: sealed, bytes: 0, blob: `fence-${randomBytes(BLOB_NAME_BYTES).toString("hex")}` };
				if (await books.sealUnlessTaken(id, part)) break;
				// The earlier writer recorded one more part before the fence, so that part counts.
				const now = await books.findOpen(id);
				if (now === undefined || now.parts === sealed)
					throw new Fault("conflict", "The file was deleted while it was being written.");
				sealed = now.parts;
				sealedBytes = now.bytes;
			}
			sealed += 1;
			return new Set(await books.emptyParts(id));
		},
		/** Seals remaining bytes and publishes the file; repeatable. `lifetimeMs`: from creation. Faults as in `seal`. */
		async finish(lifetimeMs?: number): Promise<FileRecord> {
			await seal();
			const record = await books.finish(id, lifetimeMs);
			if (record === undefined) throw new Fault("conflict", "The file was deleted while it was being written.");
			return record;
		},
	};
}
