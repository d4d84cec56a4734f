import { assert } from "../base/assert.ts";

/** Some hundred requests. Each page is touched once, so a piece need not be large; the garbage collector unmaps it. */
export const PIECE_BYTES = 256 * 1024;

/** statfs(2) types of ext2 to ext4, XFS, tmpfs. */
const SYSTEMS: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x01021994]);

/**
 * Whether a page that was written once can always be stored to. With copy-on-write (btrfs, ZFS) or a network file
 * system, a full disk would raise a signal that ends the process.
 */
export function canMap(systemType: number): boolean {
	return SYSTEMS.has(systemType >>> 0);
}

/**
 * A file mapped into memory: stored bytes survive the process. An append costs a sixth of a `write`, without a system
 * call. Each piece is written as zeros before it is mapped, so a lack of room is found then, never by a store. Bytes
 * after the end are zero.
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
		 * Appends the first `length` of `bytes`, at most a piece, or nothing: throws `makeRoom`'s or the system's error.
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
		/** No further bytes are stored: the file may be truncated after its end. */
		close() {
			isOpen = false;
		},
	};
}
