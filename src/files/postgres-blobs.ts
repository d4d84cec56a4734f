import type { Statements } from "../db/statements.ts";
import { type BlobStore, BytesLost } from "./blob-store.ts";

/** Bytes per row. A statement must be short even on a slow connection. */
const PIECE_BYTES = 256 * 1024;

/**
 * Stores blobs in a table, for instances that share only the database. `statements` should be a separate client, so
 * that other queries need not wait for megabytes.
 */
export function createPostgresBlobs(deps: { statements: Statements }): BlobStore {
	const { statements } = deps;

	return {
		name: "postgres",
		async put(fileId, blob, bytes) {
			for (let piece = 0; piece * PIECE_BYTES < bytes.length; piece += 1) {
				const part = bytes.subarray(piece * PIECE_BYTES, (piece + 1) * PIECE_BYTES);
				await statements`
					insert into stored_blob (file_id, name, piece, bytes) values (${fileId}, ${blob}, ${piece}, ${part})
					on conflict do nothing`;
			}
		},
		async read(fileId, blob, start, end) {
			const found: Uint8Array[] = [];
			for (let piece = Math.floor(start / PIECE_BYTES); piece * PIECE_BYTES < end; piece += 1) {
				const first = piece * PIECE_BYTES;
				const from = Math.max(start - first, 0);
				const length = Math.min(end - first, PIECE_BYTES) - from;
				const [row] = await statements<{ bytes: Uint8Array }>`
					select substring(bytes from ${from + 1}::int for ${length}::int) as bytes from stored_blob
					where file_id = ${fileId} and name = ${blob} and piece = ${piece}`;
				if (row?.bytes.length !== length) throw new BytesLost("a blob in the database is shorter than it was");
				found.push(row.bytes);
			}
			return Buffer.concat(found);
		},
		async removeFile(fileId) {
			await statements`delete from stored_blob where file_id = ${fileId}`;
		},
	};
}
