import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { nextTurn } from "../base/next-turn.ts";
import type { FileCipher } from "../files/file-cipher.ts";

/** A file that is appended to. Its records are sealed, and bound to its name and their place in it. */
export interface SpoolSegment {
	/** It is with the system when it returns. Throws the system's error; then nothing may be appended any more. */
	append(record: object): void;
	close(): void;
}

const OWNER_ONLY = 0o600;
const LENGTH_BYTES = 4;
/** An answer has 64 MB at most, its encryption some thousandths of that. */
const RECORD_BYTES_MAX = 256 * 1024 * 1024;
/** Others have their turn of the event loop after so many bytes. */
const SLICE_BYTES = 256 * 1024;

/** Records of `length u32, little-endian | sealed JSON`. `name`: another one for each. Throws if `path` is there. */
export function createSpoolSegment(cipher: FileCipher, path: string, name: string): SpoolSegment {
	const fd = openSync(path, "ax", OWNER_ONLY);
	let records = 0;
	return {
		append(record) {
			const sealed = cipher.seal(name, records, Buffer.from(JSON.stringify(record)));
			const bytes = Buffer.allocUnsafe(LENGTH_BYTES + sealed.length);
			bytes.writeUInt32LE(sealed.length, 0);
			bytes.set(sealed, LENGTH_BYTES);
			if (writeSync(fd, bytes) !== bytes.length) throw new Error("a record was cut off");
			records += 1;
		},
		close: () => closeSync(fd),
	};
}

/** The whole records, in their order, up to the first that is torn or damaged; returns whether there was none such. */
export async function* readSpoolSegment<T>(
	cipher: FileCipher,
	path: string,
	name: string,
): AsyncGenerator<T, boolean, void> {
	const fd = openSync(path, "r");
	try {
		let sliceBytes = 0;
		for (let record = 0; ; record += 1) {
			const header = readUpTo(fd, LENGTH_BYTES);
			if (header.length === 0) return true;
			const length = header.length < LENGTH_BYTES ? 0 : header.readUInt32LE(0);
			if (length === 0 || length > RECORD_BYTES_MAX) return false;
			const sealed = readUpTo(fd, length);
			if (sealed.length < length) return false;
			let text: Uint8Array;
			try {
				text = cipher.open(name, record, 0, sealed);
			} catch {
				return false;
			}
			yield JSON.parse(new TextDecoder().decode(text)) as T;
			sliceBytes += length;
			if (sliceBytes < SLICE_BYTES) continue;
			sliceBytes = 0;
			await nextTurn();
		}
	} finally {
		closeSync(fd);
	}
}

/** Fewer at the file's end. */
function readUpTo(fd: number, count: number): Buffer {
	const bytes = Buffer.allocUnsafe(count);
	let read = 0;
	while (read < count) {
		const got = readSync(fd, bytes, read, count - read, null);
		if (got === 0) break;
		read += got;
	}
	return bytes.subarray(0, read);
}
