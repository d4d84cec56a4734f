import { randomBytes } from "node:crypto";
import { Fault } from "../base/fault.ts";
import type { BlobStore } from "./blob-store.ts";
import type { FileBooks } from "./file-books.ts";
import type { FileCipher } from "./file-cipher.ts";
import type { FileRecord } from "./file-record.ts";

export type FileWriter = ReturnType<typeof createFileWriter>;

export interface FileWriterDeps {
	readonly books: FileBooks;
	readonly blobs: BlobStore;
	readonly cipher: FileCipher;
}

/** Size of a part. A part being sealed holds three times as much in memory. */
const PART_BYTES = 2 * 1024 * 1024;
const BLOB_NAME_BYTES = 8;

interface PendingPart {
	readonly bytes: number;
	readonly blob: string;
	/**
	 * Encrypted once: each encryption makes other bytes, and a blob that mixes two, after an interrupted attempt, could
	 * not be opened.
	 */
	readonly sealedBytes: Uint8Array;
	isStored: boolean;
}

/**
 * A file being written. Bytes gather in memory until `seal` makes a durable part of them; a crash loses unsealed bytes.
 * A file has one writer: of two, the slower one fails.
 */
export function createFileWriter(
	deps: FileWriterDeps,
	file: Pick<FileRecord, "id" | "bytes"> & { readonly parts: number },
) {
	const { books, blobs, cipher } = deps;
	const { id } = file;
	let sealed = file.parts;
	let sealedBytes = file.bytes;
	const gathered: Uint8Array[] = [];
	let gatheredBytes = 0;
	/** Kept after a failure: its blob may be stored and even sealed. */
	let pending: PendingPart | undefined;
	let sealing: Promise<unknown> = Promise.resolve();

	async function sealPending(part: PendingPart): Promise<void> {
		if (!part.isStored) await blobs.put(id, part.blob, part.sealedBytes);
		part.isStored = true;
		try {
			await books.seal(id, { number: sealed, bytes: part.bytes, blob: part.blob });
		} catch (error) {
			// A deletion during the `put` did not see this blob, and nothing else knows it.
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
	 * Resolves with the number of sealed parts once everything written before is sealed. May be retried after a failure,
	 * except Fault conflict (another writer, the file is deleted, the account's space is full) and overloaded (the whole
	 * space is full; later).
	 */
	function seal(): Promise<number> {
		const mine = sealing.then(sealNow);
		sealing = mine.catch(() => {});
		return mine;
	}

	return {
		fileId: id,
		/** Number of sealed parts, including those from before a crash; the next part gets this number. */
		parts: () => sealed,
		bytes: () => sealedBytes,
		/** Returns true once there is enough for a part: call `seal` before writing much more. Bytes are not copied. */
		write(bytes: string | Uint8Array): boolean {
			const piece = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
			gathered.push(piece);
			gatheredBytes += piece.length;
			return gatheredBytes >= PART_BYTES;
		},
		seal,
		/**
		 * Fences an earlier writer: it can seal nothing more. Seals an empty part for that and resolves with the numbers of
		 * all empty parts. To be called before any write. Faults of `seal`.
		 */
		async fence(): Promise<ReadonlySet<number>> {
			for (;;) {
				const part = { number: sealed, bytes: 0, blob: `fence-${randomBytes(BLOB_NAME_BYTES).toString("hex")}` };
				if (await books.sealUnlessTaken(id, part)) break;
				// The earlier writer sealed once more before the fence: its part counts.
				const now = await books.findOpen(id);
				if (now === undefined || now.parts === sealed)
					throw new Fault("conflict", "The file was deleted while it was being written.");
				sealed = now.parts;
				sealedBytes = now.bytes;
			}
			sealed += 1;
			return new Set(await books.emptyParts(id));
		},
		/** Seals the rest and publishes the file; repeatable. `lifetimeMs` counts from its beginning. Faults of `seal`. */
		async finish(lifetimeMs?: number): Promise<FileRecord> {
			await seal();
			const record = await books.finish(id, lifetimeMs);
			if (record === undefined) throw new Fault("conflict", "The file was deleted while it was being written.");
			return record;
		},
	};
}
