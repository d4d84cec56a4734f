import fs from "node:fs";
import { dirname, join } from "node:path";
import { type FileLock, tryFileLock } from "../../base/file-lock.ts";
import type { Config } from "../../config.ts";
import { type Finding, findingsOf, reasonOf } from "./finding.ts";

const GIB = 1024 ** 3;
/** A journal puts 8 MiB by, and the embedded server's log of changes grows to 1 GiB. */
const FREE_BYTES_BROKEN = 64 * 1024 ** 2;
const FREE_BYTES_WARNING = 2 * GIB;
const FREE_FILES_WARNING = 10_000;
const SYNCS = 5;
const SYNC_MS_WARNING = 20;
/** Magic numbers of statfs(2). */
const NETWORK_SYSTEMS: Readonly<Record<number, string>> = {
	26985: "NFS",
	4283649346: "CIFS",
	4266872130: "SMB",
	16914839: "9p",
	1702057286: "FUSE",
};
const MEMORY_SYSTEMS: readonly number[] = [0x01021994, 0x858458f6];

const ROOM = "Make room, or put DATA_DIR on another disk: on a full one nothing more is admitted.";
/** What to do where nothing can be written, by the system's code. */
const TODO: Readonly<Record<string, string>> = {
	ENOSPC: ROOM,
	EDQUOT: ROOM,
	EROFS: "Mount that disk for writing, or put DATA_DIR on another one.",
	ENOTDIR: "Set DATA_DIR to a folder: a file has that name.",
};
const TODO_ELSE = "Set DATA_DIR to a folder of the user that the service runs as.";

/** What a folder's file system says of itself. */
type FileSystem = Pick<fs.StatsFs, "type" | "bsize" | "bavail" | "files" | "ffree">;

/** What is asked of the disk. */
interface Disk {
	systemOf(folder: string): FileSystem;
	/** Median of writing a block to this file and having it reach the disk. */
	timeSyncs(path: string): number;
	/** Undefined if it cannot be locked. */
	tryLock(path: string): FileLock | undefined;
}

const THIS_DISK: Disk = { systemOf: fs.statfsSync, timeSyncs: timeSyncsOf, tryLock: tryFileLock };

/** Whether journals and what is kept beside them can be written where DATA_DIR is, safely and soon enough. */
export function checkDisk(config: Config, disk: Partial<Disk> = {}): readonly Finding[] {
	const { systemOf, timeSyncs, tryLock } = { ...THIS_DISK, ...disk };
	const found = findingsOf("disk");
	const { dataDir } = config;
	const folder = presentFolder(dataDir);
	const probe = join(folder, `.tollgate-doctor-${process.pid}`);
	try {
		const syncMs = timeSyncs(probe);
		const where = folder === dataDir ? dataDir : `${dataDir} (will be made in ${folder})`;
		const said = `${where} can be written; fsync takes ${syncMs.toFixed(1)} ms`;
		if (syncMs <= SYNC_MS_WARNING) found.ok(said);
		else if (config.journal === "host")
			found.warn(said, "With JOURNAL=host every answer waits for two of these: take a faster disk.");
		else found.note(said);
		const lock = tryLock(probe);
		if (lock === undefined)
			found.broken(`files in ${folder} cannot be locked`, "Put DATA_DIR on a disk of this machine.");
		lock?.release();
	} catch (error) {
		const code = String((error as { code?: unknown }).code);
		found.broken(`${dataDir} cannot be written: ${reasonOf(error)}`, TODO[code] ?? TODO_ELSE);
	} finally {
		if (fs.existsSync(probe)) fs.rmSync(probe);
	}
	checkSystem(systemOf(folder), config, found);
	return found.list;
}

function presentFolder(path: string): string {
	return fs.existsSync(path) ? path : presentFolder(dirname(path));
}

function timeSyncsOf(path: string): number {
	const fd = fs.openSync(path, "w", 0o600);
	try {
		const times = Array.from({ length: SYNCS }, () => {
			const startMs = performance.now();
			fs.writeSync(fd, Buffer.alloc(4096, 1));
			fs.fsyncSync(fd);
			return performance.now() - startMs;
		});
		return times.sort((a, b) => a - b)[SYNCS >> 1] as number;
	} finally {
		fs.closeSync(fd);
	}
}

function checkSystem(
	{ type, bsize, bavail, files, ffree }: FileSystem,
	{ dataDir, production, journal }: Config,
	found: ReturnType<typeof findingsOf>,
): void {
	const freeBytes = bsize * bavail;
	const free = `${(freeBytes / GIB).toFixed(1)} GiB are free on the disk of ${dataDir}`;
	if (freeBytes < FREE_BYTES_BROKEN) found.broken(free, ROOM);
	else if (freeBytes < FREE_BYTES_WARNING) found.warn(free, ROOM);
	else found.ok(free);
	if (files > 0 && ffree < FREE_FILES_WARNING) found.warn(`the disk has room for ${ffree} more files only`, ROOM);
	const network = NETWORK_SYSTEMS[type >>> 0];
	if (network !== undefined)
		found.warn(
			`${dataDir} is on a network file system (${network}), whose locks and syncs cannot be relied on`,
			"Put DATA_DIR on a disk of this machine; with JOURNAL=remote it holds nothing that may not be lost.",
		);
	if (MEMORY_SYSTEMS.includes(type >>> 0)) {
		const what = `${dataDir} is in memory: it is gone when this machine stops`;
		const todo = "Put DATA_DIR on a disk, or a volume that outlives the container.";
		if (production && journal !== "remote") found.broken(what, todo);
		else found.warn(what, todo);
	}
}
