import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { isSystemError } from "./journal-disk.ts";
import type { FoundJournal, JournalClaim, JournalOwner } from "./journal-home.ts";

/** A journal whose settlements Postgres has, kept in case a failover loses the last commits. */
export interface KeptJournal extends FoundJournal {
	/** End of the epoch according to the database. A server that lost the commit has another time, or none. */
	readonly ended: string;
}

export interface KeptJournals {
	/** Keeps the journal of `owner` after all its settlements were stored; deletes it if `ended` is undefined. */
	keep(claim: JournalClaim, owner: JournalOwner, ended: string | undefined): void;
	/** Lists kept journals, after deleting those older than `keepMs`. */
	list(): readonly KeptJournal[];
	/** Deletes all kept journals to make room on a full disk. True if there were any. */
	makeRoom(): boolean;
}

/** Most bytes of all kept journals together; beyond it the oldest are deleted. */
const KEPT_BYTES_MAX = 256 * 1024 * 1024;
const NOTE_NAME = "ended";

export const NONE_KEPT: KeptJournals = { keep: (claim) => claim.disk.destroy(), list: () => [], makeRoom: () => false };

export function openKeptJournals({ clock }: { clock: Clock }, root: string, keepMs: number): KeptJournals {
	const removed = (folder: string) => rmSync(folder, { recursive: true, force: true });

	/** Kept journals, oldest first. */
	function all(): (KeptJournal & { readonly atMs: number; readonly bytes: number })[] {
		const found = namesIn(root).flatMap((name) => {
			const folder = join(root, name);
			try {
				const note = JSON.parse(readFileSync(join(folder, NOTE_NAME), "utf8")) as Omit<KeptJournal, "folder">;
				return [{ ...note, folder, atMs: statSync(join(folder, NOTE_NAME)).mtimeMs, bytes: bytesIn(folder) }];
			} catch {
				// Another process deleted the journal, or ended while moving it here, so there is nothing to list.
				return [];
			}
		});
		return found.sort((a, b) => a.atMs - b.atMs);
	}

	function trim(): void {
		let bytes = 0;
		for (const one of all().reverse()) {
			bytes += one.bytes;
			if (bytes > KEPT_BYTES_MAX || clock.wallMs() - one.atMs > keepMs) removed(one.folder);
		}
	}

	return {
		keep(claim, { id, epoch }, ended) {
			const { folder, disk } = claim;
			if (keepMs === 0 || ended === undefined || bytesIn(folder) === 0) return disk.destroy();
			try {
				disk.freeReserve();
				writeFileSync(join(folder, NOTE_NAME), JSON.stringify({ id, epoch, ended }), { mode: 0o600 });
				mkdirSync(root, { recursive: true, mode: 0o700 });
				renameSync(folder, join(root, `${encodeURIComponent(id)} ${epoch} ${ended}`));
				trim();
			} catch (error) {
				if (!isSystemError(error)) throw error;
				disk.destroy();
			}
		},
		list() {
			trim();
			return all();
		},
		makeRoom() {
			const found = all();
			for (const { folder } of found) removed(folder);
			return found.length > 0;
		},
	};
}

function namesIn(folder: string): readonly string[] {
	try {
		return readdirSync(folder);
	} catch {
		return [];
	}
}

const bytesIn = (folder: string): number =>
	namesIn(folder).reduce((sum, name) => sum + (name.endsWith(".log") ? statSync(join(folder, name)).size : 0), 0);
