import { type BlobStore, BytesLost } from "./blob-store.ts";
import type { FileBooks, FilePart } from "./file-books.ts";
import { CHUNK_BYTES, type FileCipher, SEALED_CHUNK_BYTES } from "./file-cipher.ts";

export interface ByteRange {
	readonly start: number;
	readonly end: number;
}

/** Chunks that are read and decrypted in one step. */
const WINDOW_CHUNKS = 8;

export interface FileReaderDeps {
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
