import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../base/fault.ts";
import { tryFileLock } from "../base/file-lock.ts";
import type { JournalDisk } from "./journal-disk.ts";
import { DiskFull, isOfTheSystem, openJournalDisk } from "./journal-disk.ts";

/** Where the journals of all epochs live that this machine has seen. The simulation has one in memory. */
export interface JournalHome {
	/** Epochs that left a journal, those of one instance in their order. */
	list(): readonly { readonly id: string; readonly epoch: number }[];
	/** False if an epoch's folder is gone; one that cannot be looked at is there. */
	has(id: string, epoch: number): boolean;
	/**
	 * Takes an epoch's journal for this process alone; undefined if another one holds it or it is gone. A process that
	 * was stopped (SIGSTOP) still holds its own, a dead one does not, however it died.
	 */
	claim(id: string, epoch: number, options: { create: boolean }): JournalClaim | undefined;
}

export interface JournalClaim {
	readonly disk: JournalDisk;
	/**
	 * True if the folder was not made here since this machine started: it was copied, or its disk was cloned or moved. Then
	 * its lock tells nothing of the process that it belongs to, which may run beside this one, with the original.
	 */
	readonly isCopy: boolean;
	release(): void;
}

const LOCK_NAME = "lock";
/** Linux' own name for the time since a machine was started; elsewhere a copy is known by its file alone. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** The folders `<root>/<instance>/<epoch>/`, each with a lock of its own. */
export function openJournalHome(root: string): JournalHome {
	const folderOf = (id: string, epoch: number) => join(root, encodeURIComponent(id), String(epoch));
	return {
		list() {
			if (!existsSync(root)) return [];
			return readdirSync(root).flatMap((name) =>
				epochsIn(join(root, name)).map((epoch) => ({ id: decodeURIComponent(name), epoch })),
			);
		},
		has(id, epoch) {
			try {
				statSync(folderOf(id, epoch));
				return true;
			} catch (error) {
				return (error as NodeJS.ErrnoException).code !== "ENOENT";
			}
		},
		claim(id, epoch, { create }) {
			const folder = folderOf(id, epoch);
			if (create) return makeOf(folder);
			// A folder without a segment belongs to a process that is just starting, or to none that ever admitted.
			return openJournalDisk(folder, { create: false }).list().length === 0 ? undefined : take(folder, false);
		},
	};
}

/** Fault service_unavailable, for whoever starts the service, if there is no room or no right to write there. */
function makeOf(folder: string): JournalClaim | undefined {
	try {
		mkdirSync(folder, { recursive: true, mode: 0o700 });
		return take(folder, true);
	} catch (error) {
		if (!isOfTheSystem(error)) throw error;
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

function take(folder: string, create: boolean): JournalClaim | undefined {
	const path = join(folder, LOCK_NAME);
	const lock = lockAt(path);
	if (!lock) return undefined;
	try {
		if (create) writeFileSync(path, markOf(path));
		const mark = readFileSync(path, "utf8");
		// A former version left none, and trusted the lock.
		const isCopy = mark !== "" && mark !== markOf(path);
		return { disk: openJournalDisk(folder, { create }), isCopy, release: lock.release };
	} catch (error) {
		lock.release();
		throw error;
	}
}

/** A copy is another file, a clone of the disk is there under another start of a machine. */
function markOf(path: string): string {
	const { dev, ino } = statSync(path);
	return `${existsSync(BOOT_ID) ? readFileSync(BOOT_ID, "utf8").trim() : "-"} ${dev} ${ino}\n`;
}

/** Undefined too if another process replayed and removed the folder meanwhile. */
function lockAt(path: string) {
	try {
		return tryFileLock(path);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw error;
	}
}

function epochsIn(folder: string): number[] {
	return readdirSync(folder)
		.filter((name) => /^\d+$/.test(name))
		.map(Number)
		.sort((a, b) => a - b);
}
