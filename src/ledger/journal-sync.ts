import type { JournalFile } from "./journal-disk.ts";

/**
 * Syncs the journal with fdatasync. One sync runs and at most one waits; each covers all records appended before its
 * start. `onFailed`: acknowledged records may not survive a power loss.
 */
export function createJournalSync(sync: () => Promise<unknown>, onFailed: (error: unknown) => void) {
	/** The running sync, and the sync after it. */
	let syncing: Promise<void> | undefined;
	let next: Promise<void> | undefined;
	/** A failure is final: a later sync may report success for data that the kernel has dropped. */
	let failure: { error: unknown } | undefined;
	let unused: JournalFile[] = [];

	function start(): Promise<void> {
		const run = sync().then(() => {});
		syncing = run;
		const done = () => {
			syncing = undefined;
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
		/** Resolves once all records appended before the call are on disk. After a failed sync it always rejects. */
		durable() {
			if (failure) return Promise.reject(failure.error);
			// The next sync has not started, even if the running one is just ending, so it covers this record.
			if (next) return next;
			if (!syncing) return start();
			// The running sync may have started before this record, so only the next one covers it.
			next = syncing.then(() => {
				next = undefined;
				return start();
			});
			return next;
		},
		/** Closes a file after the syncs that use it: the system could give its descriptor to another file. */
		closeFile(file: JournalFile) {
			if (syncing || next) unused.push(file);
			else file.close();
		},
	};
}

/** Tracks whether copied admissions are on disk. Only then may the segment with the originals be removed. */
export function createCarrySync(durable: () => Promise<void>, onDurable: () => void) {
	let carries = 0;
	let carriesDurable = 0;
	let isSyncing = false;
	return {
		carried() {
			carries += 1;
		},
		/** True if all copied admissions are on disk. Otherwise starts a sync, after which `onDurable` is called. */
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
			// If the sync fails the process ends, and all segments stay.
			durable().then(done, () => {});
			return false;
		},
	};
}
