import type { JournalFile } from "./journal-disk.ts";

/**
 * Syncs the journal with fdatasync. One sync runs and at most one more waits; each covers all records appended before
 * its start. `onFailed`: acknowledged records may be lost in a power failure.
 */
export function createJournalSync(sync: () => Promise<unknown>, onFailed: (error: unknown) => void) {
	/** `syncing`: the sync in progress. `next`: the sync that starts after it. */
	let syncing: Promise<void> | undefined;
	let next: Promise<void> | undefined;
	/** A failure is permanent: a later sync may succeed although the kernel has dropped the data. */
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
			// The waiting sync has not started, even if the current one is just ending, so it covers this record.
			if (next) return next;
			if (!syncing) return start();
			// The current sync may have started before this record was appended, so only the next one covers it.
			next = syncing.then(() => {
				next = undefined;
				return start();
			});
			return next;
		},
		/** Closes a file after its pending syncs, because the system could assign its descriptor to another file. */
		closeFile(file: JournalFile) {
			if (syncing || next) unused.push(file);
			else file.close();
		},
	};
}

/** Tracks whether copied admit records are synced. Only then may the segment with the originals be removed. */
export function createCopiedRecordSync(durable: () => Promise<void>, onDurable: () => void) {
	let carries = 0;
	let carriesDurable = 0;
	let isSyncing = false;
	return {
		carried() {
			carries += 1;
		},
		/** True if all copied records are synced. Otherwise starts a sync, after which `onDurable` is called. */
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
			// If the sync fails the process ends and all segments stay, so the failure needs no handling here.
			durable().then(done, () => {});
			return false;
		},
	};
}
