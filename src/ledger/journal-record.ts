import { assert } from "../base/assert.ts";

/**
 * Record format of the journal: `length u32 | crc32 u32 | kind u8 | body`, little-endian. Length and checksum cover
 * kind and body, which is UTF-8 JSON. Reading stops at the first damaged record, because no record after it was
 * acknowledged.
 */
export const RecordKind = { admit: 1, progress: 2, settle: 3 } as const;
export type RecordKind = (typeof RecordKind)[keyof typeof RecordKind];

export interface JournalRecord {
	readonly kind: RecordKind;
	readonly body: string;
}

const HEADER_BYTES = 8;

/** Longest record in bytes. A request's record has about 1 KiB, so a greater length means damage. */
export const RECORD_BYTES_MAX = 64 * 1024;

/** Checksum of each `kind`. A record's checksum continues from it, so that the body can be hashed as a string. */
const CHECKSUM_OF_KIND = [0, 1, 2, 3].map((kind) => Bun.hash.crc32(Uint8Array.of(kind)));

const decoder = new TextDecoder();

/** Writes a record at the start of `target` and returns the record's length in bytes. */
export function encodeRecord(target: Buffer, kind: RecordKind, body: string): number {
	// A UTF-16 unit takes at most three bytes in UTF-8. Without this check, a longer body would be silently truncated.
	assert(HEADER_BYTES + 1 + body.length * 3 <= target.length, "a journal record fits the buffer");
	const length = target.write(body, HEADER_BYTES + 1, "utf8") + 1;
	target[HEADER_BYTES] = kind;
	target.writeUInt32LE(length, 0);
	target.writeUInt32LE(Bun.hash.crc32(body, CHECKSUM_OF_KIND[kind]), 4);
	return HEADER_BYTES + length;
}

/** Yields the undamaged records at the start of `bytes`; returns how many bytes they occupy. */
export function* readRecords(bytes: Uint8Array): Generator<JournalRecord, number> {
	const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	let at = 0;
	while (at + HEADER_BYTES < bytes.length) {
		const length = view.getUint32(at, true);
		const end = at + HEADER_BYTES + length;
		if (length < 1 || length > RECORD_BYTES_MAX || end > bytes.length) break;
		const payload = bytes.subarray(at + HEADER_BYTES, end);
		if (Bun.hash.crc32(payload) !== view.getUint32(at + 4, true)) break;
		const kind = payload[0];
		if (kind !== RecordKind.admit && kind !== RecordKind.progress && kind !== RecordKind.settle) break;
		yield { kind, body: decoder.decode(payload.subarray(1)) };
		at = end;
	}
	return at;
}
