import type { JournalFile } from "./journal-disk.ts";

/** Brings the journal to the disk (fdatasync): one sync at a time, and at most one that waits for it. */
export interface JournalSync {
	/** Resolves once all that was appended before is on the disk. Rejects for good after a failed sync. */
	durable(): Promise<void>;
	/** Closes a file once no sync uses it: its number could mean another file by then. */
	closeFile(file: JournalFile): void;
}

/** `sync`: of all that no sync has covered. `onFailed`: what was acknowledged may not survive a loss of power. */
export function createJournalSync(sync: () => Promise<unknown>, onFailed: (error: unknown) => void): JournalSync {
	/** The sync under way, and the one that starts behind it for all that came after its start. */
	let syncing: Promise<void> | undefined;
	let next: Promise<void> | undefined;
	/** A failed sync is final: the kernel may report success the next time for data that it dropped. */
	let failure: { error: unknown } | undefined;
	let unused: JournalFile[] = [];

	function start(): Promise<void> {
		const run = sync().then(() => {});
		syncing = run;
		const done = () => {
			syncing = undefined;
			// The one behind it is for the same files, also where the journal was closed before.
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
		durable() {
			if (failure) return Promise.reject(failure.error);
			// It is yet to start, also in the moment in which the one before it is over: with another one between them it would find
			// nothing to sync, and end before that one.
			if (next) return next;
			if (!syncing) return start();
			// What is being synced now may not hold our record: wait for the one behind it.
			next = syncing.then(() => {
				next = undefined;
				return start();
			});
			return next;
		},
		closeFile(file) {
			if (syncing || next) unused.push(file);
			else file.close();
		},
	};
}

/** What was carried forward must be as durable as what it replaces, before that is removed. */
export interface CarrySync {
	carried(): void;
	/** True if all that was carried is durable; else starts a sync, which calls `onDurable`. */
	isDurable(): boolean;
}

export function createCarrySync(durable: () => Promise<void>, onDurable: () => void): CarrySync {
	let carries = 0;
	let carriesDurable = 0;
	let isSyncing = false;
	return {
		carried() {
			carries += 1;
		},
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
			// If it fails, the process ends, with all segments where they are.
			durable().then(done, () => {});
			return false;
		},
	};
}
