import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../base/fault.ts";
import { tryFileLock } from "../base/file-lock.ts";
import { beginningOf, DiskFull, fileAt, isOfTheSystem, type JournalDisk, openJournalDisk } from "./journal-disk.ts";

export interface JournalOwner {
	readonly id: string;
	readonly epoch: number;
}

/** A journal that was found. Its folder may have been renamed or copied there: then only its lock names the owner. */
export interface FoundJournal extends JournalOwner {
	readonly folder: string;
}

/** Neither its lock nor its folder's name says which epoch wrote the journal. */
export class OwnerUnknown extends Error {}

/** The journals of all epochs that this machine has seen. The simulation has one in memory. */
export interface JournalHome {
	/** Epochs that left a journal, by instance and epoch. A folder that is no journal does not hide the others. */
	list(onUnreadable: (folder: string, error: unknown) => void): readonly FoundJournal[];
	/** Whether another process here holds a journal of this instance; that process replays the earlier ones. */
	isHeldByAnother(id: string): boolean;
	/** True if this epoch's journal was created here since the machine started: by the process that runs the epoch. */
	isHere(owner: JournalOwner): boolean;
	/**
	 * Takes an epoch's journal exclusively; undefined if missing or held. A stopped (SIGSTOP) process still holds its
	 * own, a dead one never.
	 */
	claim(id: string, epoch: number, options: ClaimOptions): JournalClaim | undefined;
}

interface ClaimOptions {
	create: boolean;
	/** Of a new journal; see `JournalClaim`. */
	began?: string | undefined;
	folder?: string | undefined;
}

export interface JournalClaim {
	readonly disk: JournalDisk;
	/** The epoch that wrote the journal, whatever its folder is called now. */
	readonly owner: JournalOwner;
	/** Whether its folder is the one in which its owner created it. */
	readonly isAtHome: boolean;
	/** When its epoch began: an older database repeats the number. Undefined if the lock does not say. */
	readonly began: string | undefined;
	/**
	 * True if not created here since this machine started (copied, cloned or moved): the lock then says nothing about its
	 * owner, which may run with the original. Also true on file systems without locks.
	 */
	readonly isCopy: boolean;
	/** False if missing, incomplete or replaced; true if the system refuses the check. */
	isThere(): boolean;
	release(): void;
}

const LOCK_NAME = "lock";
/** Limit of a lock: two ids, a moment and a file identity. Anything longer was put there by a foreign program. */
const MARK_BYTES_MAX = 4_096;
/** Linux's id of the present boot; on other systems a copy is recognised only by its file. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** The folders `<root>/<instance>/<epoch>/`, each with its own lock. */
export function openJournalHome(root: string): JournalHome {
	const folderOf = ({ id, epoch }: JournalOwner) => join(root, encodeURIComponent(id), String(epoch));
	/** Folders held by this process, whatever exists at their paths now: a replaced lock file is free. */
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
			// A folder without a segment belongs to a process that is starting, or to one that never admitted.
			if (!create && isEmpty(folder)) return undefined;
			const taken = create ? makeOf(folder, named, began) : take(folder, named, false);
			return hold(folder, taken && { ...taken, isAtHome: folder === folderOf(taken.owner) });
		},
	};
}

type TakenJournal = Omit<JournalClaim, "isAtHome">;

/** Fault `service_unavailable`, for the operator who starts the service, without room or permission to write there. */
function makeOf(folder: string, owner: JournalOwner, began: string | undefined): TakenJournal | undefined {
	try {
		mkdirSync(folder, { recursive: true, mode: 0o700 });
		return take(folder, owner, true, began);
	} catch (error) {
		if (!isOfTheSystem(error)) throw error;
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
		// A journal that exists already, since the database is of an older state, may be a copy.
		if (create && isEmpty(folder)) writeFileSync(path, markOf(path, named, now));
		const mark = markAt(path);
		const owner = ownerIn(mark) ?? named;
		if (!Number.isSafeInteger(owner.epoch)) throw new OwnerUnknown(`nothing says whose journal is in ${folder}`);
		const began = beganIn(mark);
		// An empty lock is new because the journal's own was lost or not copied.
		const isCopy = mark !== markOf(path, named, began) || !isLocked(folder);
		const disk = openJournalDisk(folder, { create });
		const file = fileAt(path);
		const isThere = () => isSeen(() => fileAt(path) === file && disk.isWhole());
		return { disk, owner, began, isCopy, isThere, release: lock.release };
	} catch (error) {
		lock.release();
		if (!create && (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw error;
	}
}

/** The next attempt has a number and a folder of its own. */
function removeIfEmpty(folder: string): void {
	try {
		if (isEmpty(folder)) rmSync(folder, { recursive: true, force: true });
	} catch (error) {
		if (!isOfTheSystem(error)) throw error;
	}
}

function isEmpty(folder: string): boolean {
	return openJournalDisk(folder, { create: false }).list().length === 0;
}

/** Only a successful check can find it missing. */
function isSeen(look: () => boolean): boolean {
	try {
		return look();
	} catch (error) {
		if (isOfTheSystem(error)) return true;
		throw error;
	}
}

/** File, boot and owner: a copy is another file, a cloned disk has another boot, a folder can be renamed. */
function markOf(path: string, { id, epoch }: JournalOwner, began: string | undefined): string {
	const boot = existsSync(BOOT_ID) ? readFileSync(BOOT_ID, "utf8").trim() : "-";
	const since = began === undefined ? "" : `@${began} `;
	return `${boot} ${fileAt(path)} ${since}${encodeURIComponent(id)}/${epoch}\n`;
}

const markAt = (path: string): string => beginningOf(path, MARK_BYTES_MAX).toString();

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

/** Undefined too if another process replayed and removed the folder in between. */
function lockAt(path: string) {
	try {
		return tryFileLock(path);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw error;
	}
}

/** Ordered by epoch; none if there is no folder. The epoch is not a number if the folder's name is not. */
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
