import {
	closeSync,
	constants,
	existsSync,
	fdatasync,
	fstatSync,
	fsyncSync,
	ftruncateSync,
	mkdirSync,
	openSync,
	readdirSync,
	readSync,
	rmSync,
	statfsSync,
	statSync,
	unlinkSync,
	writeSync,
} from "node:fs";
import { join } from "node:path";
import { createMappedFile, PIECE_BYTES, supportsMapping } from "./mapped-file.ts";

/** Storage of one epoch's journal: a folder of segment files, or memory in the simulation. */
export type JournalDisk = ReturnType<typeof openJournalDisk>;

export interface JournalFile {
	/**
	 * Appends the first `length` of `bytes`, all or nothing; they survive a crash of the process. Throws DiskFull or the
	 * system's error. `length` avoids allocating a view per record.
	 */
	append(bytes: Buffer, length: number): void;
	/** Makes appended data survive a power loss. Do not retry a failed sync: the kernel may have dropped the data. */
	sync(): Promise<void>;
	close(): void;
}

export class DiskFull extends Error {
	override readonly name = "DiskFull" as const;
}

/** True for an error of the operating system. Callers rethrow every other error as a bug. */
export function isSystemError(error: unknown): boolean {
	return error instanceof DiskFull || typeof (error as NodeJS.ErrnoException).syscall === "string";
}

/** Size at which a new segment is started. */
export const SEGMENT_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum bytes read of a segment: its last record or mapped piece may extend beyond SEGMENT_BYTES_MAX. */
const READ_BYTES_MAX = SEGMENT_BYTES_MAX + 2 * PIECE_BYTES;
/** Bytes of reserved disk space, enough for the settlements of about ten thousand requests. */
const RESERVE_BYTES = 8 * 1024 * 1024;
const ZEROS = new Uint8Array(PIECE_BYTES);
const RESERVE_NAME = "reserve";
const SEGMENT = /^\d{8}\.log$/;

/**
 * Opens the folder `path`. `create` makes the folder and its reserve if they are missing. `maps`: files are mapped into
 * memory where the file system allows it; otherwise they are written with `write`.
 */
export function openJournalDisk(path: string, options: { create: boolean; maps?: boolean }) {
	const reserve = join(path, RESERVE_NAME);
	if (options.create) {
		mkdirSync(path, { recursive: true, mode: 0o700 });
		putReserveBy(reserve);
	}
	const maps = options.create && options.maps !== false && supportsMapping(statfsSync(path).type);
	/** Identity of each segment's file, by segment name; see `fileIdentity`. */
	const segments = new Map<string, string | undefined>();
	return {
		/** Names of the segments, oldest first. */
		list: (): readonly string[] =>
			existsSync(path)
				? readdirSync(path)
						.filter((name) => SEGMENT.test(name))
						.sort()
				: [],
		/** Reads at most a segment's largest size, because another program may have appended gigabytes of zeros. */
		read: (name: string): Uint8Array => readStart(join(path, name), READ_BYTES_MAX),
		/** Creates a segment. On failure throws DiskFull or the system's error and leaves no file. */
		create(name: string): JournalFile {
			const file = createFile(join(path, name), path, maps);
			segments.set(name, fileIdentity(join(path, name)));
			return file;
		},
		remove(name: string) {
			segments.delete(name);
			rmSync(join(path, name), { force: true });
		},
		/** False if a segment that this object created is missing or was replaced. */
		isWhole: () => [...segments].every(([name, file]) => fileIdentity(join(path, name)) === file),
		destroy: () => rmSync(path, { recursive: true, force: true }),
		/** Frees the reserved disk space, so that requests in flight can still be settled. True if there was any. */
		freeReserve() {
			if (!existsSync(reserve)) return false;
			unlinkSync(reserve);
			return true;
		},
		/** Reserves disk space again. False if the disk has too little room. */
		keepReserve() {
			if (existsSync(reserve)) return true;
			try {
				putReserveBy(reserve);
				return true;
			} catch (error) {
				if (isNoSpace(error)) return false;
				throw error;
			}
		},
	};
}

/** Reads the first `bytesMax` bytes of a file. Throws unless it is a regular file, because a pipe would block. */
export function readStart(path: string, bytesMax: number): Buffer {
	const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
	try {
		const stats = fstatSync(fd);
		if (!stats.isFile()) throw Object.assign(new Error(`no file: ${path}`), { code: "EINVAL", syscall: "read" });
		const bytes = Buffer.alloc(Math.min(stats.size, bytesMax));
		let length = 0;
		for (let more = -1; more !== 0 && length < bytes.length; length += more) {
			more = readSync(fd, bytes, length, bytes.length - length, length);
		}
		return bytes.subarray(0, length);
	} finally {
		closeSync(fd);
	}
}

/** Device and inode of the file at `path`, unique while a process has it open; undefined if no file is there. */
export function fileIdentity(path: string): string | undefined {
	try {
		const { dev, ino } = statSync(path);
		return `${dev} ${ino}`;
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		if (code === "ENOENT" || code === "ENOTDIR") return undefined;
		throw error;
	}
}

function putReserveBy(path: string): void {
	const fd = openSync(path, "w", 0o600);
	try {
		const zeros = Buffer.alloc(1024 * 1024);
		for (let written = 0; written < RESERVE_BYTES; written += zeros.length) {
			if (writeSync(fd, zeros) !== zeros.length) throw new DiskFull("there is no room for the reserve");
		}
	} catch (error) {
		unlinkSync(path);
		throw error;
	} finally {
		closeSync(fd);
	}
}

function createFile(path: string, folder: string, maps: boolean): JournalFile {
	let fd: number | undefined;
	try {
		fd = openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_RDWR, 0o600);
		syncFolder(folder);
		return fileOf(path, fd, maps);
	} catch (error) {
		// A file that exists under this name belongs to another journal, so opening fails.
		if (fd !== undefined) {
			closeSync(fd);
			rmSync(path, { force: true });
		}
		throw isNoSpace(error) ? new DiskFull("no space left for a segment", { cause: error }) : error;
	}
}

function fileOf(path: string, fd: number, maps: boolean): JournalFile {
	let length = 0;
	const fillWithZeros = (from: number, bytes: number) => writeAll(fd, ZEROS, bytes, from);
	/** Undefined if the file cannot be memory-mapped or a mapped append failed. Records are then written with `write`. */
	let mapped = maps ? createMappedFile(path, fillWithZeros) : undefined;

	function store(bytes: Buffer, count: number): boolean {
		try {
			mapped?.append(bytes, count);
		} catch (error) {
			if (error instanceof DiskFull) throw error;
			mapped = undefined;
		}
		return mapped !== undefined;
	}

	return {
		append(bytes, count) {
			// Writes at the end of the last complete record, so that a record written in part is overwritten.
			if (!store(bytes, count)) writeAll(fd, bytes, count, length);
			length += count;
		},
		sync: () => new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve()))),
		close() {
			mapped?.close();
			try {
				ftruncateSync(fd, length);
			} catch (error) {
				// If truncation fails, the file keeps its zeros at the end, as after a crash. Readers skip them.
				if (!isSystemError(error)) throw error;
			} finally {
				closeSync(fd);
			}
		},
	};
}

/** Writes the first `count` of `bytes` at `from`, all or nothing. Throws DiskFull or the system's error. */
function writeAll(fd: number, bytes: Uint8Array, count: number, from: number): void {
	try {
		const written = writeSync(fd, bytes, 0, count, from);
		if (written !== count) throw new DiskFull(`only ${written} of ${count} bytes were written`);
	} catch (error) {
		ftruncateSync(fd, from);
		throw isNoSpace(error) ? new DiskFull("no space left", { cause: error }) : error;
	}
}

function isNoSpace(error: unknown): boolean {
	const { code } = error as NodeJS.ErrnoException;
	return error instanceof DiskFull || code === "ENOSPC" || code === "EDQUOT";
}

/** Syncs a folder, because a new file's name survives a power loss only after that. */
function syncFolder(path: string): void {
	const fd = openSync(path, "r");
	try {
		fsyncSync(fd);
	} finally {
		closeSync(fd);
	}
}
