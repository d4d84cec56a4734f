import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { DiskFull, isOfTheSystem, type JournalDisk, type JournalFile, SEGMENT_BYTES_MAX } from "./journal-disk.ts";
import { encodeRecord, RECORD_BYTES_MAX, RecordKind } from "./journal-record.ts";

export type Journal = ReturnType<typeof createJournal>;

/** What the journal survives before a request goes on: the end of the process, of the machine, or of its disk. */
export type JournalMode = "process" | "host" | "remote";

export interface JournalDeps {
	disk: JournalDisk;
	clock: Clock;
	log: Log;
	/** Acknowledged records may not survive a loss of power: the process must end. */
	onSyncFailed(error: unknown): void;
}

export interface JournalOptions {
	/** `durable` waits for fdatasync. */
	syncs: boolean;
	segmentBytesMax?: number | undefined;
}

interface Segment {
	readonly number: number;
	readonly name: string;
	readonly file: JournalFile;
	bytes: number;
	/** Requests opened here that Postgres does not have yet. */
	owed: number;
	/** Has data that no sync has covered. */
	dirty: boolean;
}

/** Segments that running requests may keep; admissions in older ones are carried forward. */
const SEGMENTS_KEPT = 4;
/** How often a disk that refused a record is tried again. */
const RETRY_MS = 1_000;

/** An append-only record of the requests that this epoch admitted, promised to deliver, and settled. */
export function createJournal(deps: JournalDeps, options: JournalOptions) {
	const { disk, clock, log } = deps;
	const segmentBytesMax = options.segmentBytesMax ?? SEGMENT_BYTES_MAX;
	const buffer = Buffer.allocUnsafe(2 * RECORD_BYTES_MAX);
	/** Oldest first. */
	const segments = new Map<number, Segment>();
	let current = open(1);
	/** Why requests are refused, and when the disk was last tried; undefined if it accepts records. */
	let failure: { readonly what: string; readonly atMs: number } | undefined;
	let closed = false;
	const sync = createJournalSync(syncDirty, deps.onSyncFailed);
	const carrySync = createCarrySync(sync.durable, removePaid);

	function open(number: number): Segment {
		const name = `${String(number).padStart(8, "0")}.log`;
		const segment = { number, name, file: disk.create(name), bytes: 0, owed: 0, dirty: false };
		segments.set(number, segment);
		return segment;
	}

	function append(kind: RecordKind, body: string): void {
		appendBytes(encodeRecord(buffer, kind, body));
	}

	function refuseUnlessWritable(): void {
		const what = problem();
		if (what !== undefined) throw new DiskFull(what);
	}

	function appendBytes(length: number): void {
		assert(!closed, "the journal is open");
		current.file.append(buffer, length);
		current.bytes += length;
		current.dirty = true;
	}

	/** For running requests: they may use the reserve. */
	function appendFromReserve(kind: RecordKind, body: string): void {
		try {
			append(kind, body);
		} catch (error) {
			if (!(error instanceof DiskFull) || !disk.freeReserve()) throw error;
			noteFailed("the journal's disk is full", error);
			append(kind, body);
		}
	}

	/** Full; or its folder was removed, its permissions changed, or the process has no free descriptor. */
	function noteFailed(what: "the journal's disk is full" | "the journal cannot be written", error: unknown): void {
		if (failure === undefined) {
			// Literals: a test compares the log's lines with the runbook.
			if (what === "the journal's disk is full")
				log.error("the journal's disk is full: no more requests are admitted", { error });
			else log.error("the journal cannot be written: no more requests are admitted", { error });
		}
		failure = { what, atMs: clock.monotonicMs() };
	}

	/** Checks whether the disk has room again; without the reserve no request is admitted. */
	function problem(): string | undefined {
		if (failure === undefined) return undefined;
		const nowMs = clock.monotonicMs();
		if (closed || nowMs - failure.atMs < RETRY_MS) return failure.what;
		failure = { what: failure.what, atMs: nowMs };
		if (!takesRecords()) return failure.what;
		failure = undefined;
		log.info("the journal is writable again");
		return undefined;
	}

	function takesRecords(): boolean {
		try {
			if (!disk.keepReserve()) return false;
			beginNextIfFull();
			return true;
		} catch (error) {
			if (!isOfTheSystem(error)) throw error;
			return false;
		}
	}

	function beginNextIfFull(): void {
		if (current.bytes < segmentBytesMax) return;
		current = open(current.number + 1);
		removePaid();
	}

	/**
	 * Removes the oldest first, never out of order: a segment also holds later records of requests opened in an older
	 * one; without those a replay would use older progress.
	 */
	function removePaid(): void {
		for (const segment of segments.values()) {
			if (segment === current || segment.owed > 0 || closed) return;
			if (options.syncs && !carrySync.isDurable()) return;
			segments.delete(segment.number);
			sync.closeFile(segment.file);
			removeFrom(() => disk.remove(segment.name));
		}
	}

	/** A segment that stays is replayed once more, which changes nothing; no reason to end the process. */
	function removeFrom(remove: () => void): void {
		try {
			remove();
		} catch (error) {
			if (!isOfTheSystem(error)) throw error;
			log.warn("a journal segment that is no longer needed could not be removed", { error });
		}
	}

	function syncDirty(): Promise<unknown> {
		const dirty = [...segments.values()].filter((segment) => segment.dirty);
		for (const segment of dirty) segment.dirty = false;
		return Promise.all(dirty.map((segment) => segment.file.sync()));
	}

	return {
		/**
		 * Opens a request; returns the number of its segment. Throws DiskFull or the system's error: then neither this
		 * request nor another is admitted until the disk accepts records again.
		 */
		admit(body: string) {
			refuseUnlessWritable();
			try {
				beginNextIfFull();
				append(RecordKind.admit, body);
			} catch (error) {
				if (error instanceof DiskFull) noteFailed("the journal's disk is full", error);
				else if (isOfTheSystem(error)) noteFailed("the journal cannot be written", error);
				throw error;
			}
			current.owed += 1;
			return current.number;
		},
		/** Raises the bound of what may have been delivered. Uses the reserved space if the disk is full. */
		progress: (body: string) => appendFromReserve(RecordKind.progress, body),
		/** Closes a request. Uses the reserved space if the disk is full. */
		settle: (body: string) => appendFromReserve(RecordKind.settle, body),
		/** Postgres has the request that `admit` opened in this segment; removes segments that are not needed any more. */
		acknowledge(number: number) {
			if (closed) return;
			const segment = segments.get(number);
			assert(
				segment !== undefined && segment.owed > 0,
				"an acknowledged request was opened in a segment that still owes",
			);
			segment.owed -= 1;
			if (segment.owed === 0) removePaid();
		},
		/**
		 * Copies a running request's admission and newest progress record into the current segment; returns its number. The
		 * caller then acknowledges the old segment so that it can be removed. Throws DiskFull.
		 */
		carry(admitBody: string, progressBody: string | undefined) {
			refuseUnlessWritable();
			// One append, so that a crash leaves both records or neither.
			let length = encodeRecord(buffer, RecordKind.admit, admitBody);
			if (progressBody !== undefined)
				length += encodeRecord(buffer.subarray(length), RecordKind.progress, progressBody);
			appendBytes(length);
			current.owed += 1;
			carrySync.carried();
			return current.number;
		},
		/** Requests admitted in a segment before this one are to be carried forward. */
		keepsFrom: () => current.number - SEGMENTS_KEPT,
		/** Resolves when everything appended so far survives a loss of power; immediately unless `syncs`. */
		durable: () => (options.syncs ? sync.durable() : Promise.resolve()),
		/** Why no further request can be opened now; undefined if one can. */
		problem,
		size() {
			let bytes = 0;
			for (const segment of segments.values()) bytes += segment.bytes;
			return { segments: segments.size, bytes };
		},
		/** Closes the files; they stay for a replay. */
		close() {
			if (closed) return;
			closed = true;
			for (const segment of segments.values()) sync.closeFile(segment.file);
		},
		/** Closes and removes everything: all of it is in Postgres. */
		destroy() {
			this.close();
			removeFrom(() => disk.destroy());
		},
	};
}

/**
 * Syncs the journal (fdatasync): one at a time, at most one waiting; `sync` covers all that no earlier one did.
 * `onFailed`: acknowledged records may not survive a loss of power.
 */
function createJournalSync(sync: () => Promise<unknown>, onFailed: (error: unknown) => void) {
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
			// The next sync has yet to start, even as the current one ends: a sync between them would find nothing to do and
			// end before the current one.
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
function createCarrySync(durable: () => Promise<void>, onDurable: () => void) {
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
