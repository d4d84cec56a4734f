import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../base/fault.ts";
import { tryFileLock } from "../base/file-lock.ts";
import type { JournalDisk } from "./journal-disk.ts";
import { DiskFull, isOfTheSystem, openJournalDisk } from "./journal-disk.ts";

/** Where the journals of all epochs live that this machine has seen. The simulation has one in memory. */
export interface JournalHome {
	/** Epochs that left a journal, those of one instance in their order. */
	list(): readonly { readonly id: string; readonly epoch: number }[];
	/**
	 * Takes an epoch's journal for this process alone; undefined if another one holds it or it is gone. A process that
	 * was stopped (SIGSTOP) still holds its own, a dead one does not, however it died.
	 */
	claim(id: string, epoch: number, options: { create: boolean }): JournalClaim | undefined;
}

export interface JournalClaim {
	readonly disk: JournalDisk;
	release(): void;
}

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
	const lock = lockIn(folder);
	if (!lock) return undefined;
	try {
		return { disk: openJournalDisk(folder, { create }), release: lock.release };
	} catch (error) {
		lock.release();
		throw error;
	}
}

/** Undefined too if another process replayed and removed the folder meanwhile. */
function lockIn(folder: string) {
	try {
		return tryFileLock(join(folder, "lock"));
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
