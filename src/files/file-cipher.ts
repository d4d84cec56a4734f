import { createCipheriv, createDecipheriv, hkdfSync, randomFillSync } from "node:crypto";
import { assert } from "../base/assert.ts";

export type FileCipher = ReturnType<typeof createFileCipher>;

/** Bytes that are encrypted together, so that a range of the file can be read without the remaining bytes. */
export const CHUNK_BYTES = 64 * 1024;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes of an encrypted chunk in a blob: nonce, ciphertext, tag. */
export const SEALED_CHUNK_BYTES = NONCE_BYTES + CHUNK_BYTES + TAG_BYTES;
const KEY_BYTES = 32;

/**
 * Encrypts with AES-256-GCM: a key per file (HKDF-SHA-256 of `secret` and the file's id), a random nonce per chunk.
 * Each chunk is bound to its file, part and position, so that chunks cannot be exchanged.
 */
export function createFileCipher(secret: string) {
	const keyOf = (fileId: string) => new Uint8Array(hkdfSync("sha256", secret, fileId, "tollgate files", KEY_BYTES));
	const placeOf = (fileId: string, part: number, chunk: number) => Buffer.from(`${fileId}/${part}/${chunk}`);

	return {
		seal(fileId: string, part: number, bytes: Uint8Array): Uint8Array {
			const key = keyOf(fileId);
			const chunks = Math.ceil(bytes.length / CHUNK_BYTES);
			const blob = Buffer.allocUnsafe(bytes.length + chunks * (SEALED_CHUNK_BYTES - CHUNK_BYTES));
			for (let chunk = 0, at = 0; chunk < chunks; chunk += 1) {
				const text = bytes.subarray(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES);
				const nonce = blob.subarray(at, at + NONCE_BYTES);
				randomFillSync(nonce);
				const cipher = createCipheriv("aes-256-gcm", key, nonce);
				cipher.setAAD(placeOf(fileId, part, chunk));
				cipher.update(text).copy(blob, at + NONCE_BYTES);
				cipher.final();
				cipher.getAuthTag().copy(blob, at + NONCE_BYTES + text.length);
				at += NONCE_BYTES + text.length + TAG_BYTES;
			}
			return blob;
		},
		/** Decrypts a blob's chunks from `firstChunk` on. Throws if a chunk was not encrypted for its position. */
		open(fileId: string, part: number, firstChunk: number, sealed: Uint8Array): Uint8Array {
			const key = keyOf(fileId);
			const chunks = Math.ceil(sealed.length / SEALED_CHUNK_BYTES);
			const text = Buffer.allocUnsafe(sealed.length - chunks * (SEALED_CHUNK_BYTES - CHUNK_BYTES));
			for (let index = 0; index < chunks; index += 1) {
				const one = sealed.subarray(index * SEALED_CHUNK_BYTES, (index + 1) * SEALED_CHUNK_BYTES);
				assert(one.length > NONCE_BYTES + TAG_BYTES, "a sealed chunk has text in it");
				const decipher = createDecipheriv("aes-256-gcm", key, one.subarray(0, NONCE_BYTES));
				decipher.setAAD(placeOf(fileId, part, firstChunk + index));
				decipher.setAuthTag(one.subarray(-TAG_BYTES));
				decipher.update(one.subarray(NONCE_BYTES, -TAG_BYTES)).copy(text, index * CHUNK_BYTES);
				decipher.final();
			}
			return text;
		},
	};
}
