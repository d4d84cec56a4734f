import type { JournalFile } from "./journal-disk.ts";

/**
 * Syncs the journal (fdatasync), one sync at a time and at most one waiting; each covers all records appended before
 * it. `onFailed`: acknowledged records may not survive a power loss.
 */
export function createJournalSync(sync: () => Promise<unknown>, onFailed: (error: unknown) => void) {
	/** The running sync, and the next one, for all records appended after its start. */
	let syncing: Promise<void> | undefined;
	let next: Promise<void> | undefined;
	/** A failed sync is final: a later one may report success for data that the kernel dropped. */
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
		/** Resolves once everything appended before is on disk. Rejects for ever after a failed sync. */
		durable() {
			if (failure) return Promise.reject(failure.error);
			// The next sync has not started, even if the current one is just ending: another sync between them would end too
			// early.
			if (next) return next;
			if (!syncing) return start();
			// The running sync may not cover this record, so it waits for the next one.
			next = syncing.then(() => {
				next = undefined;
				return start();
			});
			return next;
		},
		/** Closes a file once no sync uses it, because its descriptor could then belong to another file. */
		closeFile(file: JournalFile) {
			if (syncing || next) unused.push(file);
			else file.close();
		},
	};
}

/** Tells whether copied records are durable; only then may the segment that they replace be removed. */
export function createCarrySync(durable: () => Promise<void>, onDurable: () => void) {
	let carries = 0;
	let carriesDurable = 0;
	let isSyncing = false;
	return {
		carried() {
			carries += 1;
		},
		/** True if all copied records are durable; otherwise starts a sync, which calls `onDurable`. */
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
			// On failure the process ends and all segments stay.
			durable().then(done, () => {});
			return false;
		},
	};
}
