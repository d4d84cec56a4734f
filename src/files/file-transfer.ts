import { randomBytes } from "node:crypto";
import { Fault } from "../base/fault.ts";
import { type BlobStore, BytesLost } from "./blob-store.ts";
import type { FileBooks, FilePart } from "./file-books.ts";
import { CHUNK_BYTES, type FileCipher, SEALED_CHUNK_BYTES } from "./file-cipher.ts";
import type { FileRecord } from "./file-record.ts";

export interface ByteRange {
	readonly start: number;
	readonly end: number;
}

/** Chunks that are read and decrypted in one step. */
const WINDOW_CHUNKS = 8;

interface FileReaderDeps {
	readonly books: Pick<FileBooks, "parts">;
	readonly blobs: BlobStore;
	readonly cipher: FileCipher;
}

/**
 * Streams a file's bytes with at most half a megabyte in memory. Fails if bytes are missing or changed, so that no
 * reader mistakes a part for the whole file.
 */
export function readFile(deps: FileReaderDeps, fileId: string, range: ByteRange): ReadableStream<Uint8Array> {
	const windows = windowsOf(deps, fileId, range);
	return new ReadableStream<Uint8Array>(
		{
			async pull(controller) {
				const { done, value } = await windows.next();
				if (done) controller.close();
				else controller.enqueue(value);
			},
			async cancel() {
				await windows.return();
			},
		},
		{ highWaterMark: 0 },
	);
}

async function* windowsOf(deps: FileReaderDeps, fileId: string, range: ByteRange): AsyncGenerator<Uint8Array, void> {
	let at = range.start;
	while (at < range.end) {
		const parts = await deps.books.parts(fileId, at, range.end);
		if (parts[0] === undefined || parts[0].start > at) throw new BytesLost(`bytes of the file ${fileId} are missing`);
		for (const part of parts) {
			const end = Math.min(range.end, part.start + part.bytes);
			while (at < end) {
				const window = await readWindow(deps, fileId, part, { start: at, end });
				yield window;
				at += window.length;
			}
		}
	}
}

/** Reads the first window of `range`, which must be within `part`. */
async function readWindow({ blobs, cipher }: FileReaderDeps, fileId: string, part: FilePart, range: ByteRange) {
	const start = range.start - part.start;
	const firstChunk = Math.floor(start / CHUNK_BYTES);
	const chunksEnd = Math.min(Math.ceil((range.end - part.start) / CHUNK_BYTES), firstChunk + WINDOW_CHUNKS);
	const sealed = await blobs.read(
		fileId,
		part.blob,
		firstChunk * SEALED_CHUNK_BYTES,
		Math.min(chunksEnd * SEALED_CHUNK_BYTES, sealedBytes(part.bytes)),
	);
	const text = cipher.open(fileId, part.number, firstChunk, sealed);
	const skipped = firstChunk * CHUNK_BYTES;
	return text.subarray(start - skipped, range.end - part.start - skipped);
}

/** Encrypted size of a part with this many plain bytes. */
function sealedBytes(bytes: number): number {
	return bytes + Math.ceil(bytes / CHUNK_BYTES) * (SEALED_CHUNK_BYTES - CHUNK_BYTES);
}

export type FileWriter = ReturnType<typeof createFileWriter>;

/** Size of a part. Sealing a part takes three times as much memory. */
export const FILE_PART_BYTES = 2 * 1024 * 1024;
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
	{ books, blobs, cipher }: { readonly books: FileBooks; readonly blobs: BlobStore; readonly cipher: FileCipher },
	file: Pick<FileRecord, "id" | "bytes"> & { readonly parts: number },
) {
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
			return gatheredBytes >= FILE_PART_BYTES;
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
