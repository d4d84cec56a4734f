import { assert } from "../base/assert.ts";

/** Size of a mapped piece, enough for some hundred requests. The garbage collector unmaps unused pieces. */
export const PIECE_BYTES = 256 * 1024;

/** Type numbers that statfs(2) reports for ext2 to ext4, XFS and tmpfs. */
const SYSTEMS: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x01021994]);

/**
 * True if storing to an already written page always succeeds. On copy-on-write file systems (btrfs, ZFS) and network
 * file systems a full disk would raise a signal that ends the process.
 */
export function supportsMapping(systemType: number): boolean {
	return SYSTEMS.has(systemType >>> 0);
}

/**
 * A file mapped into memory, whose stored bytes survive the process. An append needs no system call and costs a sixth
 * of a `write`. Each piece is first written as zeros, so that a full disk fails there and not at a store. Bytes after
 * the end are zero.
 */
export function createMappedFile(path: string, makeRoom: (from: number, bytes: number) => void) {
	let from = 0;
	let piece = pieceFrom(from);
	let used = 0;
	let isOpen = true;

	function pieceFrom(offset: number): Uint8Array {
		makeRoom(offset, PIECE_BYTES);
		return Bun.mmap(path, { shared: true, ...{ offset, size: PIECE_BYTES } });
	}

	return {
		/**
		 * Appends the first `length` of `bytes`, at most a piece, or nothing. Throws `makeRoom`'s or the system's error.
		 */
		append(bytes: Buffer, length: number) {
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
		/** Ends all stores, so that the caller may truncate the file. */
		close() {
			isOpen = false;
		},
	};
}
