import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { assert } from "../base/assert.ts";
import type { Log } from "../base/log.ts";
import { nextTurn } from "../base/next-turn.ts";
import { createFileCipher } from "../files/file-cipher.ts";
import type { BatchUsage } from "./batch-record.ts";

/** What became of a line that no sealed part tells of yet. */
export interface SpooledLine {
	readonly line: number;
	/** UUID of the request that carried it. */
	readonly id: string;
	/** Undefined if nothing was charged and the line may be sent again. */
	readonly answer: SpooledAnswer | undefined;
}

export interface SpooledAnswer {
	readonly file: "output" | "error";
	/** As it is to stand in that file. */
	readonly text: string;
	readonly usage: BatchUsage | undefined;
}

/** What one run puts by. */
export interface RunSpool {
	/** Written to this machine's disk when it returns; a disk that takes nothing is logged, and the run goes on without. */
	add(line: SpooledLine): void;
	/** Gives what removes all that was added until now: for when it is sealed. */
	mark(): () => void;
	close(): void;
}

/**
 * Answers of lines that wait to be sealed, in a folder of this machine: a process that is killed leaves them to the next
 * run of its batch here. They are encrypted like files, readable for this user alone, and go when they are sealed. They
 * are as much as the run has in memory. Not for loss of power, nor for runs on other machines.
 */
export interface AnswerSpool {
	open(batchId: string, run: number): RunSpool;
	/** What runs before this one put by, in their order. */
	left(batchId: string, run: number): AsyncGenerator<SpooledLine, void>;
	/** What runs before this one put by is sealed. */
	taken(batchId: string, run: number): void;
	/** Batches that something lies here of. */
	batches(): readonly string[];
	/** The batch is over. */
	forget(batchId: string): void;
}

const OWNER_ONLY_FOLDER = 0o700;
const OWNER_ONLY = 0o600;
const LENGTH_BYTES = 4;
/** An answer has 64 MB at most, its encryption some thousandths of that. */
const RECORD_BYTES_MAX = 256 * 1024 * 1024;
/** Others have their turn of the event loop after so many bytes. */
const SLICE_BYTES = 256 * 1024;

interface Segment {
	readonly run: number;
	readonly number: number;
}

/** Segments `<folder>/<batch>/<run>-<number>`, each records of `length u32, little-endian | sealed JSON`. */
export function createAnswerSpool(deps: { log: Log }, options: { folder: string; secret: string }): AnswerSpool {
	const { folder, secret } = options;
	const cipher = createFileCipher(secret);

	function folderOf(batchId: string): string {
		assert(/^[a-z0-9_-]+$/i.test(batchId), "a batch's id is of our making");
		return join(folder, batchId);
	}
	const nameOf = ({ run, number }: Segment) => `${run}-${number}`;
	const keyOf = (batchId: string, segment: Segment) => `${batchId}/${nameOf(segment)}`;

	function segmentsBefore(batchId: string, run: number): Segment[] {
		return namesIn(folderOf(batchId))
			.map((name) => name.split("-").map(Number))
			.map(([of = 0, number = 0]) => ({ run: of, number }))
			.filter((segment) => segment.run < run)
			.sort((a, b) => a.run - b.run || a.number - b.number);
	}

	/** What stays is of no use to anybody, and goes with its batch. */
	function remove(path: string): void {
		try {
			rmSync(path, { recursive: true, force: true });
		} catch (error) {
			deps.log.warn("answers that were put by could not be removed", { path, error });
		}
	}

	/** The whole records of a segment: behind a torn one there is nothing. */
	async function* read(batchId: string, segment: Segment): AsyncGenerator<SpooledLine, void> {
		const fd = openSync(join(folderOf(batchId), nameOf(segment)), "r");
		try {
			let sliceBytes = 0;
			for (let record = 0; ; record += 1) {
				const length = readBytes(fd, LENGTH_BYTES)?.readUInt32LE(0);
				if (length === undefined || length === 0 || length > RECORD_BYTES_MAX) return;
				const sealed = readBytes(fd, length);
				if (sealed === undefined) return;
				let text: Uint8Array;
				try {
					text = cipher.open(keyOf(batchId, segment), record, 0, sealed);
				} catch {
					return;
				}
				yield JSON.parse(new TextDecoder().decode(text)) as SpooledLine;
				sliceBytes += length;
				if (sliceBytes < SLICE_BYTES) continue;
				sliceBytes = 0;
				await nextTurn();
			}
		} finally {
			closeSync(fd);
		}
	}

	return {
		open(batchId, run) {
			/** Not removed yet: the last one is written to while `fd` is there. */
			let segments: Segment[] = [];
			let number = 0;
			let records = 0;
			let fd: number | undefined;
			let isFailing = false;

			function end(): void {
				if (fd !== undefined) closeSync(fd);
				fd = undefined;
			}
			function begin(): Segment & { readonly fd: number } {
				const last = segments.at(-1);
				if (fd !== undefined && last !== undefined) return { ...last, fd };
				const segment = { run, number };
				number += 1;
				records = 0;
				mkdirSync(folderOf(batchId), { recursive: true, mode: OWNER_ONLY_FOLDER });
				fd = openSync(join(folderOf(batchId), nameOf(segment)), "ax", OWNER_ONLY);
				segments.push(segment);
				return { ...segment, fd };
			}
			return {
				add(line) {
					try {
						const segment = begin();
						const sealed = cipher.seal(keyOf(batchId, segment), records, Buffer.from(JSON.stringify(line)));
						const record = Buffer.allocUnsafe(LENGTH_BYTES + sealed.length);
						record.writeUInt32LE(sealed.length, 0);
						record.set(sealed, LENGTH_BYTES);
						if (writeSync(segment.fd, record) !== record.length) throw new Error("a record was cut");
						records += 1;
						isFailing = false;
					} catch (error) {
						// What is behind a torn record is not read: the next one goes elsewhere.
						end();
						if (!isFailing) deps.log.warn("answers of a batch cannot be put by", { batch: batchId, error });
						isFailing = true;
					}
				},
				mark() {
					const until = segments;
					segments = [];
					end();
					return () => {
						for (const segment of until) remove(join(folderOf(batchId), nameOf(segment)));
					};
				},
				close: end,
			};
		},
		async *left(batchId, run) {
			for (const segment of segmentsBefore(batchId, run)) yield* read(batchId, segment);
		},
		taken(batchId, run) {
			for (const segment of segmentsBefore(batchId, run)) remove(join(folderOf(batchId), nameOf(segment)));
		},
		batches: () => namesIn(folder),
		forget: (batchId) => remove(folderOf(batchId)),
	};
}

function namesIn(folder: string): string[] {
	return existsSync(folder) ? readdirSync(folder) : [];
}

/** Undefined if there are fewer left. */
function readBytes(fd: number, count: number): Buffer | undefined {
	const bytes = Buffer.allocUnsafe(count);
	for (let read = 0; read < count; ) {
		const got = readSync(fd, bytes, read, count - read, null);
		if (got === 0) return undefined;
		read += got;
	}
	return bytes;
}
