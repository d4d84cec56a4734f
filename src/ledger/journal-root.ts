import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Fault } from "../base/fault.ts";
import { tryFileLock } from "../base/file-lock.ts";
import { DiskFull, fileIdentity, isSystemError, type JournalDisk, openJournalDisk, readStart } from "./journal-disk.ts";

export interface JournalOwner {
	readonly id: string;
	readonly epoch: number;
}

/** A journal found on this machine. Its folder may have been renamed or copied, so the lock file names its owner. */
export interface FoundJournal extends JournalOwner {
	readonly folder: string;
}

/** Thrown if neither the lock file nor the folder's name identifies the epoch that wrote the journal. */
export class OwnerUnknown extends Error {}

/** All journals on this machine, or in memory in the simulation. */
export type JournalRoot = ReturnType<typeof openJournalRoot>;

interface ClaimOptions {
	create: boolean;
	/** Start of the epoch, which is written into the lock file of a new journal; see `JournalClaim`. */
	began?: string | undefined;
	folder?: string | undefined;
}

export interface JournalClaim {
	readonly disk: JournalDisk;
	readonly folder: string;
	/** Epoch that wrote the journal, from the lock file; the folder may have another name. */
	readonly owner: JournalOwner;
	/** True if the journal is in the folder in which it was created. */
	readonly isAtHome: boolean;
	/** Start of the epoch, because a restored database repeats numbers. Undefined if the lock file lacks it. */
	readonly began: string | undefined;
	/**
	 * True if the journal was copied, cloned or moved here, or if the file system has no locks. Its owner may then still
	 * run elsewhere with the original journal.
	 */
	readonly isCopy: boolean;
	/** False if the journal is missing, incomplete or replaced. True if the operating system's error leaves that open. */
	isThere(): boolean;
	release(): void;
}

const LOCK_NAME = "lock";
/** Longest content of a lock file: two ids, a time and a file identity. */
const MARK_BYTES_MAX = 4_096;
/** Path of Linux's boot id. Other systems have none; there only the file's identity reveals a copied journal. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** Opens the folders `<root>/<instance>/<epoch>/`, each a journal with a lock file. */
export function openJournalRoot(root: string) {
	const folderOf = ({ id, epoch }: JournalOwner) => join(root, encodeURIComponent(id), String(epoch));
	/** Folders whose journals this process holds. Needed because a lock file that was replaced appears unlocked. */
	const held = new Set<string>();

	function hold(folder: string, claim: JournalClaim | undefined): JournalClaim | undefined {
		if (claim === undefined) return undefined;
		held.add(folder);
		return {
			...claim,
			release() {
				held.delete(folder);
				claim.release();
			},
		};
	}

	return {
		/** Lists the journals by instance and epoch. Reports and skips a folder that is not a journal. */
		list(onUnreadable: (folder: string, error: unknown) => void): readonly FoundJournal[] {
			if (!isFolder(root)) return [];
			return readdirSync(root)
				.sort()
				.flatMap((name) => {
					try {
						return journalsIn(join(root, name), onUnreadable).map((found) => ({ ...found, id: name }));
					} catch (error) {
						onUnreadable(join(root, name), error);
						return [];
					}
				});
		},
		/** True if another process here has locked a journal of this instance; that process replays the earlier ones. */
		isHeldByAnother(id: string): boolean {
			const found = journalsIn(join(root, encodeURIComponent(id)), () => {});
			return found.some(({ folder }) => !held.has(folder) && isLocked(folder));
		},
		/** Highest epoch of this instance that created a journal here; 0 if none did. */
		lastEpoch(id: string): number {
			const path = lastPathOf(join(root, encodeURIComponent(id)));
			return existsSync(path) ? Number(readFileSync(path, "utf8")) || 0 : 0;
		},
		/** True if the journal was created on this machine since its last boot, and so by the epoch's own process. */
		isHere(owner: JournalOwner): boolean {
			const path = join(folderOf(owner), LOCK_NAME);
			if (!existsSync(path)) return false;
			const mark = markAt(path);
			return mark === markOf(path, owner, beganIn(mark));
		},
		/**
		 * Locks an epoch's journal. Undefined if it is missing or another process holds it. A process stopped by SIGSTOP
		 * keeps its lock; a dead one does not.
		 */
		claim(id: string, epoch: number, options: ClaimOptions): JournalClaim | undefined {
			const named = { id, epoch };
			const { create, began, folder = folderOf(named) } = options;
			if (held.has(folder)) return undefined;
			// A folder without segments has nothing to replay: its process is still starting, or admitted no request.
			if (!create && isEmpty(folder)) return undefined;
			const taken = create ? makeOf(folder, named, began) : take(folder, named, false);
			return hold(folder, taken && { ...taken, folder, isAtHome: folder === folderOf(taken.owner) });
		},
	};
}

/** An encoded instance id contains no space, so this file is never taken for an instance's folder. */
const lastPathOf = (journals: string) => `${journals} last-epoch`;

type TakenJournal = Omit<JournalClaim, "isAtHome" | "folder">;

/** Creates the folder. Fault `service_unavailable` without room or permission; its private text names the remedy. */
function makeOf(folder: string, owner: JournalOwner, began: string | undefined): TakenJournal | undefined {
	try {
		mkdirSync(folder, { recursive: true, mode: 0o700 });
		writeFileSync(lastPathOf(dirname(folder)), String(owner.epoch), { mode: 0o600 });
		return take(folder, owner, true, began);
	} catch (error) {
		if (!isSystemError(error)) throw error;
		removeIfEmpty(folder);
		throw new Fault("service_unavailable", `The journal cannot be written in ${folder}: ${hintFor(error)}.`, {
			private: (error as Error).message,
			cause: error,
		});
	}
}

function hintFor(error: unknown): string {
	const isFull = error instanceof DiskFull || (error as NodeJS.ErrnoException).code === "ENOSPC";
	return isFull ? "make room on the disk of DATA_DIR, 16 MB at least" : "DATA_DIR must be a folder of this user";
}

function take(folder: string, named: JournalOwner, create: boolean, now?: string): TakenJournal | undefined {
	const path = join(folder, LOCK_NAME);
	const lock = lockAt(path);
	if (!lock) return undefined;
	try {
		// A folder with segments gets no new lock file: the journal is newer than the database, and may be a copy.
		if (create && isEmpty(folder)) writeFileSync(path, markOf(path, named, now));
		const mark = markAt(path);
		const owner = ownerIn(mark) ?? named;
		if (!Number.isSafeInteger(owner.epoch)) throw new OwnerUnknown(`nothing says whose journal is in ${folder}`);
		const began = beganIn(mark);
		const isCopy = mark !== markOf(path, named, began) || !isLocked(folder);
		const disk = openJournalDisk(folder, { create });
		const file = fileIdentity(path);
		const isThere = () => isSeen(() => fileIdentity(path) === file && disk.isWhole());
		return { disk, owner, began, isCopy, isThere, release: lock.release };
	} catch (error) {
		lock.release();
		if (!create && (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw error;
	}
}

/** Ignores failures, because the next attempt uses another epoch number and so another folder. */
function removeIfEmpty(folder: string): void {
	try {
		if (isEmpty(folder)) rmSync(folder, { recursive: true, force: true });
	} catch (error) {
		if (!isSystemError(error)) throw error;
	}
}

function isEmpty(folder: string): boolean {
	return openJournalDisk(folder, { create: false }).list().length === 0;
}

/** True unless `look` itself finds the journal missing; an error of `look` does not prove that. */
function isSeen(look: () => boolean): boolean {
	try {
		return look();
	} catch (error) {
		if (isSystemError(error)) return true;
		throw error;
	}
}

/** Lock file's text: file identity (reveals a copy), boot id (reveals a cloned disk), owner (if it is renamed). */
function markOf(path: string, { id, epoch }: JournalOwner, began: string | undefined): string {
	const boot = existsSync(BOOT_ID) ? readFileSync(BOOT_ID, "utf8").trim() : "-";
	const since = began === undefined ? "" : `@${began} `;
	return `${boot} ${fileIdentity(path)} ${since}${encodeURIComponent(id)}/${epoch}\n`;
}

const markAt = (path: string): string => readStart(path, MARK_BYTES_MAX).toString();

function ownerIn(mark: string): JournalOwner | undefined {
	const [, id, epoch] = / (\S+)\/(\d+)\n$/.exec(mark) ?? [];
	return id === undefined ? undefined : { id: decodeURIComponent(id), epoch: Number(epoch) };
}

const beganIn = (mark: string): string | undefined => / @(\d+) \S+\n$/.exec(mark)?.[1];

function isLocked(folder: string): boolean {
	const path = join(folder, LOCK_NAME);
	if (!existsSync(path)) return false;
	const lock = lockAt(path);
	lock?.release();
	return lock === undefined;
}

/** Also returns undefined if another process replayed and removed the folder in between. */
function lockAt(path: string) {
	try {
		return tryFileLock(path);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw error;
	}
}

/** Journals in an instance's folder, by epoch; empty if it is missing. A name that is no number gives NaN. */
function journalsIn(
	folder: string,
	onUnreadable: (folder: string, error: unknown) => void,
): readonly Omit<FoundJournal, "id">[] {
	if (!isFolder(folder)) return [];
	const found = readdirSync(folder).flatMap((name) => {
		const at = join(folder, name);
		const epoch = /^\d+$/.test(name) ? Number(name) : Number.NaN;
		try {
			return isFolder(at) && (!Number.isNaN(epoch) || !isEmpty(at)) ? { folder: at, epoch } : [];
		} catch (error) {
			onUnreadable(at, error);
			return [];
		}
	});
	const placeOf = ({ epoch }: { epoch: number }) => (Number.isNaN(epoch) ? Number.MAX_VALUE : epoch);
	return found.sort((a, b) => placeOf(a) - placeOf(b));
}

function isFolder(path: string): boolean {
	return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
