import { assert } from "../base/assert.ts";

/** Bytes of a file as they lie in memory: what is stored there is the file's, whatever becomes of the process. */
export interface MappedFile {
	/** The first `length` of `bytes`, at most a piece, or nothing: throws what making room throws, or the system's error. */
	append(bytes: Buffer, length: number): void;
	/** Nothing is stored any more: the file may be cut behind its end. */
	close(): void;
}

/** Some hundred requests. Each page of it is touched once, so it need not be large; the collector unmaps it. */
export const PIECE_BYTES = 256 * 1024;

/** statfs(2) of ext2 to ext4, XFS, tmpfs. */
const SYSTEMS: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x01021994]);

/**
 * Whether a page that was written once can be stored to for ever. Where each change takes room anew (btrfs, ZFS), or a
 * server keeps the file, a full disk would be a signal that ends the process.
 */
export function canMap(systemType: number): boolean {
	return SYSTEMS.has(systemType >>> 0);
}

/**
 * Appends by storing: a sixth of what a `write` costs, and no system call. The file grows a piece at a time, written as
 * zeros before it is mapped, so that room is found, or missed, then and never by a store. What lies behind the end is zero.
 */
export function createMappedFile(path: string, makeRoom: (from: number, bytes: number) => void): MappedFile {
	let from = 0;
	let piece = pieceFrom(from);
	let used = 0;
	let isOpen = true;

	function pieceFrom(offset: number): Uint8Array {
		makeRoom(offset, PIECE_BYTES);
		return Bun.mmap(path, { shared: true, ...{ offset, size: PIECE_BYTES } });
	}

	return {
		append(bytes, length) {
			assert(isOpen && length <= PIECE_BYTES, "a record is stored in an open file and spans two pieces at most");
			const room = PIECE_BYTES - used;
			if (length <= room) {
				bytes.copy(piece, used, 0, length);
				used += length;
				return;
			}
			const next = pieceFrom(from + PIECE_BYTES);
			bytes.copy(piece, used, 0, room);
			bytes.copy(next, 0, room, length);
			piece = next;
			from += PIECE_BYTES;
			used = length - room;
		},
		close() {
			isOpen = false;
		},
	};
}
