import { assert } from "../base/assert.ts";

/** Bytes of a memory-mapped piece, for some hundred requests. The garbage collector unmaps unused pieces. */
export const PIECE_BYTES = 256 * 1024;

/** File system type numbers (statfs(2)) of ext2 to ext4, XFS and tmpfs. */
const SYSTEMS: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x01021994]);

/**
 * True if a store to a page of the file that was written before never fails. On copy-on-write file systems (btrfs, ZFS)
 * and network file systems, a full disk would raise a signal that ends the process.
 */
export const supportsMapping = (systemType: number): boolean => SYSTEMS.has(systemType >>> 0);

/**
 * A memory-mapped file, whose bytes survive a crash of the process. An append needs no system call and costs a sixth of
 * a `write`. Each piece is first filled with zeros, so that a full disk fails there and not at a later store. Bytes
 * after the last record are zero.
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
		 * Appends the first `length` bytes (at most PIECE_BYTES), all or nothing. Throws `makeRoom`'s or the system's
		 * error.
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
		/** Ends the mapping, so that the caller may truncate the file. */
		close() {
			isOpen = false;
		},
	};
}
