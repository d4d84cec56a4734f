import { randomBytes } from "node:crypto";
import { Fault } from "../base/fault.ts";
import type { BlobStore } from "./blob-store.ts";
import type { FileBooks } from "./file-books.ts";
import type { FileCipher } from "./file-cipher.ts";
import type { FileRecord } from "./file-record.ts";

/**
 * A file in the making. What is written gathers in memory until `seal` makes one part of it: that is final, and there
 * after a crash; what was not sealed is lost as a whole. There is one writer of a file: of two the slower one fails.
 */
export interface FileWriter {
	readonly fileId: string;
	/** Sealed parts, those from before a crash among them: the next one has this number. */
	parts(): number;
	/** Of its sealed parts. */
	bytes(): number;
	/** Bytes that are not sealed yet. */
	buffered(): number;
	/** True once there is enough for a part: then `seal`, before much more is written. The bytes are kept, not copied. */
	write(bytes: string | Uint8Array): boolean;
	/**
	 * Resolves with the number of sealed parts once all that was written before is in one. After a failure it may be
	 * called again, unless that was a Fault: conflict (another writer, the file is gone, the account's space is full),
	 * overloaded (everybody's space is full; again later).
	 */
	seal(): Promise<number>;
	/**
	 * Shuts an earlier writer out: it seals nothing from now on, and what it was about to is known to be lost. Seals an
	 * empty part for that; resolves with the numbers of all such parts. Before anything is written. Faults of `seal`.
	 */
	fence(): Promise<ReadonlySet<number>>;
	/** Seals the rest; from now on the file is found. It is kept so long from when it was begun. Faults of `seal`. May be repeated. */
	finish(lifetimeMs?: number): Promise<FileRecord>;
}

export interface FileWriterDeps {
	readonly books: FileBooks;
	readonly blobs: BlobStore;
	readonly cipher: FileCipher;
}

/** Enough for a part. What is under way holds as much, and twice as much again while it is sealed. */
const PART_BYTES = 2 * 1024 * 1024;
const BLOB_NAME_BYTES = 8;

interface PendingPart {
	/** Of what was written. */
	readonly bytes: number;
	readonly blob: string;
	/**
	 * Sealed once: each sealing makes other bytes of the same, and a store that has some of the former from an attempt that broke
	 * off may keep those. Nothing would open what is of two.
	 */
	readonly sealedBytes: Uint8Array;
	isStored: boolean;
}

export function createFileWriter(
	deps: FileWriterDeps,
	file: Pick<FileRecord, "id" | "bytes"> & { readonly parts: number },
): FileWriter {
	const { books, blobs, cipher } = deps;
	const { id } = file;
	let sealed = file.parts;
	let sealedBytes = file.bytes;
	let gathered: Uint8Array[] = [];
	let gatheredBytes = 0;
	/** Kept over a failure: its blob may be stored, and it may even be sealed. */
	let pending: PendingPart | undefined;
	let sealing: Promise<unknown> = Promise.resolve();

	async function sealPending(part: PendingPart): Promise<void> {
		if (!part.isStored) await blobs.put(id, part.blob, part.sealedBytes);
		part.isStored = true;
		try {
			await books.seal(id, { number: sealed, bytes: part.bytes, blob: part.blob });
		} catch (error) {
			// Who deleted it while this was being put has seen nothing of that, and nobody else knows of it.
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
			const bytes = Buffer.concat(gathered);
			pending = { bytes: bytes.length, blob, sealedBytes: cipher.seal(id, sealed, bytes), isStored: false };
			gathered = [];
			gatheredBytes = 0;
			await sealPending(pending);
		}
		return sealed;
	}

	const writer: FileWriter = {
		fileId: id,
		parts: () => sealed,
		bytes: () => sealedBytes,
		buffered: () => gatheredBytes + (pending?.bytes ?? 0),
		write(bytes) {
			const piece = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
			gathered.push(piece);
			gatheredBytes += piece.length;
			return gatheredBytes >= PART_BYTES;
		},
		seal() {
			const mine = sealing.then(sealNow);
			sealing = mine.catch(() => {});
			return mine;
		},
		async fence() {
			for (;;) {
				const part = { number: sealed, bytes: 0, blob: `fence-${randomBytes(BLOB_NAME_BYTES).toString("hex")}` };
				if (await books.sealUnlessTaken(id, part)) break;
				// The earlier one was first once more: what it sealed is there.
				const now = await books.findOpen(id);
				if (now === undefined || now.parts === sealed)
					throw new Fault("conflict", "The file was deleted while it was written.");
				sealed = now.parts;
				sealedBytes = now.bytes;
			}
			sealed += 1;
			return new Set(await books.emptyParts(id));
		},
		async finish(lifetimeMs) {
			await writer.seal();
			const record = await books.finish(id, lifetimeMs);
			if (record === undefined) throw new Fault("conflict", "The file was deleted while it was written.");
			return record;
		},
	};
	return writer;
}
