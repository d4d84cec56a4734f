import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { SettledEvent } from "./event.ts";
import { DiskFull, isSystemError, type JournalDisk, type JournalFile, SEGMENT_BYTES_MAX } from "./journal-disk.ts";
import { readSettlements } from "./journal-reader.ts";
import { encodeRecord, RECORD_BYTES_MAX, RecordKind } from "./journal-record.ts";
import { createCopiedRecordSync, createJournalSync } from "./journal-sync.ts";

export type Journal = ReturnType<typeof createJournal>;

/** What an acknowledged record survives: the end of the process, a power loss (`host`), a disk loss (`remote`). */
export type JournalMode = "process" | "host" | "remote";

export interface JournalDeps {
	disk: JournalDisk;
	clock: Clock;
	log: Log;
	/** Called after a failed sync: acknowledged records may be lost in a power failure, so the process must end. */
	onSyncFailed(error: unknown): void;
	/** Called if the disk is full: deletes journals that are kept only for failovers. Returns true if there were any. */
	makeRoom?: (() => boolean) | undefined;
}

export interface JournalOptions {
	/** True: `durable` waits for fdatasync. False: it returns at once. */
	syncs: boolean;
	segmentBytesMax?: number | undefined;
	/** Milliseconds for which a segment is kept after Postgres has all its settlements; 0 by default. */
	keepMs?: number | undefined;
}

interface Segment {
	readonly number: number;
	readonly name: string;
	readonly file: JournalFile;
	bytes: number;
	/** Number of requests admitted in this segment whose settlements Postgres lacks. */
	owed: number;
	/** True if the segment has records that no sync has covered. */
	dirty: boolean;
}

/** Number of newest segments with running requests. Records in older segments are copied to the current one. */
const SEGMENTS_KEPT = 4;
/** Maximum segments kept for a failover that loses commits; each has the records of about ten thousand requests. */
const KEPT_SEGMENTS_MAX = 8;
/** Milliseconds before a disk that refused a record is tried again. */
const RETRY_MS = 1_000;

/** Append-only record of the requests that this epoch admitted, may have delivered, and settled. */
export function createJournal(deps: JournalDeps, options: JournalOptions) {
	const { disk, clock, log } = deps;
	const segmentBytesMax = options.segmentBytesMax ?? SEGMENT_BYTES_MAX;
	const buffer = Buffer.allocUnsafe(2 * RECORD_BYTES_MAX);
	/** Segments in use by number, oldest first. */
	const segments = new Map<number, Segment>();
	/** Segments kept although Postgres has everything in them, oldest first. */
	const kept: { readonly name: string; readonly atMs: number }[] = [];
	/** Number of readers at present. While there is one, no segment is removed. */
	let readings = 0;
	let current = open(1);
	/** Why the journal accepts no records, and when the disk was last tried; undefined if it accepts them. */
	let failure: { readonly what: string; readonly atMs: number } | undefined;
	let closed = false;
	const sync = createJournalSync(syncDirty, deps.onSyncFailed);
	const carrySync = createCopiedRecordSync(sync.durable, removePaid);

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

	function appendAdmission(body: string): void {
		try {
			beginNextIfFull();
			append(RecordKind.admit, body);
		} catch (error) {
			if (!(error instanceof DiskFull) || !dropKept()) throw error;
			beginNextIfFull();
			append(RecordKind.admit, body);
		}
	}

	/** Appends a record of a running request. The record may use the reserved disk space. */
	function appendFromReserve(kind: RecordKind, body: string): void {
		try {
			append(kind, body);
		} catch (error) {
			if (!(error instanceof DiskFull) || !disk.freeReserve()) throw error;
			noteFailed("the journal's disk is full", error);
			append(kind, body);
		}
	}

	/** Stops admission after a failed append: the disk is full, the folder missing, or no file descriptor available. */
	function noteFailed(what: "the journal's disk is full" | "the journal cannot be written", error: unknown): void {
		if (failure === undefined) {
			// Each log text is a literal in the source, because a test compares all log texts with the runbook.
			if (what === "the journal's disk is full")
				log.error("the journal's disk is full: no more requests are admitted", { error });
			else log.error("the journal cannot be written: no more requests are admitted", { error });
		}
		failure = { what, atMs: clock.monotonicMs() };
	}

	/** Tries the disk again; returns why it accepts no records. Admission also waits for the reserved space. */
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
			dropKept();
			if (!disk.keepReserve()) return false;
			beginNextIfFull();
			return true;
		} catch (error) {
			if (!isSystemError(error)) throw error;
			return false;
		}
	}

	function beginNextIfFull(): void {
		if (current.bytes < segmentBytesMax) return;
		current = open(current.number + 1);
		removePaid();
	}

	/**
	 * Removes segments whose settlements Postgres has, oldest first and without gaps. A segment may contain later records
	 * of requests admitted in an older segment; without them, a replay would use outdated progress.
	 */
	function removePaid(): void {
		for (const segment of segments.values()) {
			if (segment === current || segment.owed > 0 || closed) break;
			if (options.syncs && !carrySync.isDurable()) break;
			segments.delete(segment.number);
			sync.closeFile(segment.file);
			kept.push({ name: segment.name, atMs: clock.monotonicMs() });
		}
		const oldestMs = clock.monotonicMs() - (options.keepMs ?? 0);
		removeKept(({ atMs }, left) => left > KEPT_SEGMENTS_MAX || atMs <= oldestMs);
	}

	function removeKept(isOver: (segment: (typeof kept)[0], left: number) => boolean): void {
		for (let first = kept[0]; first && readings === 0 && isOver(first, kept.length); first = kept[0]) {
			const { name } = first;
			kept.shift();
			removeFrom(() => disk.remove(name));
		}
	}

	/** Deletes kept segments to make room for new requests. True if there were any. */
	function dropKept(): boolean {
		const before = kept.length;
		removeKept(() => true);
		return (deps.makeRoom?.() ?? false) || kept.length < before;
	}

	/** A segment that cannot be removed is replayed again, which changes nothing. */
	function removeFrom(remove: () => void): void {
		try {
			remove();
		} catch (error) {
			if (!isSystemError(error)) throw error;
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
		 * Records an admission and returns the number of its segment. Throws DiskFull or the system's error; afterwards no
		 * request is admitted until the disk accepts records again.
		 */
		admit(body: string) {
			refuseUnlessWritable();
			try {
				appendAdmission(body);
			} catch (error) {
				if (error instanceof DiskFull) noteFailed("the journal's disk is full", error);
				else if (isSystemError(error)) noteFailed("the journal cannot be written", error);
				throw error;
			}
			current.owed += 1;
			return current.number;
		},
		/** Records the most that the delivered part may have cost. Uses the reserved space if the disk is full. */
		progress: (body: string) => appendFromReserve(RecordKind.progress, body),
		/** Records a settlement. Uses the reserved space if the disk is full. */
		settle: (body: string) => appendFromReserve(RecordKind.settle, body),
		/** Records that Postgres has one more settlement of this segment; removes segments that are no longer needed. */
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
		 * Copies a running request's admit record and its newest progress to the current segment; returns that segment's
		 * number. The caller then acknowledges the old segment. Throws DiskFull.
		 */
		carry(admitBody: string, progressBody: string | undefined) {
			refuseUnlessWritable();
			// Appends both records in one write, so that a crash leaves both or neither.
			let length = encodeRecord(buffer, RecordKind.admit, admitBody);
			if (progressBody !== undefined)
				length += encodeRecord(buffer.subarray(length), RecordKind.progress, progressBody);
			appendBytes(length);
			current.owed += 1;
			carrySync.carried();
			return current.number;
		},
		/** Oldest segment that may contain running requests. Older records must be copied to the current one. */
		keepsFrom: () => current.number - SEGMENTS_KEPT,
		/** Resolves when all records appended so far survive a power loss; at once if `options.syncs` is false. */
		durable: () => (options.syncs ? sync.durable() : Promise.resolve()),
		/** Why no request can be admitted now; undefined if requests can. */
		problem,
		/**
		 * Yields all settlements on disk that Postgres should have, oldest first. `waiting` returns the ids of settlements
		 * still queued for Postgres; it is called for each segment.
		 */
		*settlements(waiting: () => ReadonlySet<string>): Generator<SettledEvent> {
			readings += 1;
			try {
				for (const name of disk.list()) {
					const bytes = disk.read(name);
					const without = waiting();
					for (const event of readSettlements(bytes)) if (!without.has(event.id)) yield event;
				}
			} finally {
				readings -= 1;
			}
		},
		size() {
			let bytes = 0;
			for (const segment of segments.values()) bytes += segment.bytes;
			return { segments: segments.size, bytes };
		},
		/** Closes the files and leaves them on disk for a replay. */
		close() {
			if (closed) return;
			closed = true;
			for (const segment of segments.values()) sync.closeFile(segment.file);
		},
		/** Closes and deletes the journal, because Postgres has all of its settlements. */
		destroy() {
			this.close();
			removeFrom(() => disk.destroy());
		},
	};
}
