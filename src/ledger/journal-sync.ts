import type { JournalFile } from "./journal-disk.ts";

/**
 * Writes the journal to the disk (fdatasync): one sync at a time, and at most one waiting. `sync` covers all that no
 * earlier one did. `onFailed`: acknowledged records may not survive a loss of power.
 */
export function createJournalSync(sync: () => Promise<unknown>, onFailed: (error: unknown) => void) {
	/** The sync under way, and the one that follows it for all records appended after its start. */
	let syncing: Promise<void> | undefined;
	let next: Promise<void> | undefined;
	/** A failed sync is final: the next one may report success for data that the kernel dropped. */
	let failure: { error: unknown } | undefined;
	let unused: JournalFile[] = [];

	function start(): Promise<void> {
		const run = sync().then(() => {});
		syncing = run;
		const done = () => {
			syncing = undefined;
			// The next sync covers the same files, even if the journal was closed before.
			if (next) return;
			for (const file of unused) file.close();
			unused = [];
		};
		run.then(done, (error) => {
			failure ??= { error };
			next = undefined;
			done();
			onFailed(error);
		});
		return run;
	}

	return {
		/** Resolves once everything appended before is on the disk. Rejects permanently after a failed sync. */
		durable() {
			if (failure) return Promise.reject(failure.error);
			// The next sync has yet to start, even in the moment in which the current one ends. Another sync between them
			// would find nothing to sync, and would end before the current one.
			if (next) return next;
			if (!syncing) return start();
			// The sync under way may not cover this record: wait for the next one.
			next = syncing.then(() => {
				next = undefined;
				return start();
			});
			return next;
		},
		/** Closes a file once no sync uses it: its descriptor could belong to another file by then. */
		closeFile(file: JournalFile) {
			if (syncing || next) unused.push(file);
			else file.close();
		},
	};
}

/** Tracks whether carried records are durable: they must be so before the segment they replace is removed. */
export function createCarrySync(durable: () => Promise<void>, onDurable: () => void) {
	let carries = 0;
	let carriesDurable = 0;
	let isSyncing = false;
	return {
		carried() {
			carries += 1;
		},
		/** True if all carried records are durable; otherwise starts a sync, which calls `onDurable`. */
		isDurable() {
			if (carriesDurable >= carries) return true;
			if (isSyncing) return false;
			isSyncing = true;
			const upTo = carries;
			const done = () => {
				carriesDurable = upTo;
				isSyncing = false;
				onDurable();
			};
			// If it fails, the process ends and all segments stay.
			durable().then(done, () => {});
			return false;
		},
	};
}
