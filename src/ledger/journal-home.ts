import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../base/fault.ts";
import { tryFileLock } from "../base/file-lock.ts";
import { DiskFull, fileIdentity, isSystemError, type JournalDisk, openJournalDisk, readStart } from "./journal-disk.ts";

export interface JournalOwner {
	readonly id: string;
	readonly epoch: number;
}

/** A journal on this machine. If its folder was renamed or copied, only its lock file names the owner. */
export interface FoundJournal extends JournalOwner {
	readonly folder: string;
}

/** Neither the lock file nor the folder's name says which epoch wrote the journal. */
export class OwnerUnknown extends Error {}

/** Journals of all epochs that ran on this machine; in memory in the simulation. */
export interface JournalHome {
	/** Lists journals by instance and epoch. A folder that is not a journal is reported and skipped. */
	list(onUnreadable: (folder: string, error: unknown) => void): readonly FoundJournal[];
	/** Whether another process on this machine holds a journal of this instance; that process replays earlier ones. */
	isHeldByAnother(id: string): boolean;
	/** True if this epoch's journal was created on this machine since it started, so by the epoch's own process. */
	isHere(owner: JournalOwner): boolean;
	/**
	 * Locks an epoch's journal; undefined if it is missing or held. A stopped (SIGSTOP) process keeps its lock, a dead
	 * one does not.
	 */
	claim(id: string, epoch: number, options: ClaimOptions): JournalClaim | undefined;
}

interface ClaimOptions {
	create: boolean;
	/** Start of the epoch of a new journal; see `JournalClaim`. */
	began?: string | undefined;
	folder?: string | undefined;
}

export interface JournalClaim {
	readonly disk: JournalDisk;
	readonly folder: string;
	/** Epoch that wrote the journal, whatever its folder's name. */
	readonly owner: JournalOwner;
	/** True if the journal is in the folder in which it was created. */
	readonly isAtHome: boolean;
	/** Start of the epoch, since an older database repeats its number. Undefined if the lock file does not say. */
	readonly began: string | undefined;
	/**
	 * True if it was not created on this machine since it started (copied, cloned or moved), or if the file system has no
	 * locks. Then its owner may be running with the original.
	 */
	readonly isCopy: boolean;
	/** False if the journal is missing, incomplete or replaced; true if the system refuses the check. */
	isThere(): boolean;
	release(): void;
}

const LOCK_NAME = "lock";
/** Longest content of a lock file: two ids, a time and a file identity. A longer one is not this service's. */
const MARK_BYTES_MAX = 4_096;
/** Linux's id of the present boot. On other systems a copy is recognized only by its file. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** Folders `<root>/<instance>/<epoch>/`, each with a lock file. */
export function openJournalHome(root: string): JournalHome {
	const folderOf = ({ id, epoch }: JournalOwner) => join(root, encodeURIComponent(id), String(epoch));
	/** Folders held by this process, even if their lock files were replaced and seem free. */
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
		list(onUnreadable) {
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
		isHeldByAnother(id) {
			const found = journalsIn(join(root, encodeURIComponent(id)), () => {});
			return found.some(({ folder }) => !held.has(folder) && isLocked(folder));
		},
		isHere(owner) {
			const path = join(folderOf(owner), LOCK_NAME);
			if (!existsSync(path)) return false;
			const mark = markAt(path);
			return mark === markOf(path, owner, beganIn(mark));
		},
		claim(id, epoch, { create, began, folder = folderOf({ id, epoch }) }) {
			const named = { id, epoch };
			if (held.has(folder)) return undefined;
			// A folder without segments belongs to a starting process, or to one that admitted no request.
			if (!create && isEmpty(folder)) return undefined;
			const taken = create ? makeOf(folder, named, began) : take(folder, named, false);
			return hold(folder, taken && { ...taken, folder, isAtHome: folder === folderOf(taken.owner) });
		},
	};
}

type TakenJournal = Omit<JournalClaim, "isAtHome" | "folder">;

/** Creates the folder. Fault `service_unavailable`, for the operator, without room or permission. */
function makeOf(folder: string, owner: JournalOwner, began: string | undefined): TakenJournal | undefined {
	try {
		mkdirSync(folder, { recursive: true, mode: 0o700 });
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
		// A journal that already exists, because the database is older, may be a copy.
		if (create && isEmpty(folder)) writeFileSync(path, markOf(path, named, now));
		const mark = markAt(path);
		const owner = ownerIn(mark) ?? named;
		if (!Number.isSafeInteger(owner.epoch)) throw new OwnerUnknown(`nothing says whose journal is in ${folder}`);
		const began = beganIn(mark);
		// The lock file is empty, so it is new: the original was lost or not copied.
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

/** The next attempt uses another number and folder. */
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

/** Only a check that succeeds can find the journal missing. */
function isSeen(look: () => boolean): boolean {
	try {
		return look();
	} catch (error) {
		if (isSystemError(error)) return true;
		throw error;
	}
}

/** Identifies file, boot and owner: a copy is another file, a cloned disk another boot, a folder may be renamed. */
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

/** Also undefined if another process replayed and removed the folder in between. */
function lockAt(path: string) {
	try {
		return tryFileLock(path);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw error;
	}
}

/** Journals in a folder, ordered by epoch; none without a folder. The epoch is NaN if the folder has no number. */
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
