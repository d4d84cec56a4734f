import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { assert } from "../base/assert.ts";
import { tryFileLock } from "../base/file-lock.ts";
import type { Log } from "../base/log.ts";
import { createFileCipher } from "../files/file-cipher.ts";
import type { Claim, RunSpool, SpooledLine, SpoolRecord } from "./run-spool.ts";
import { createRunSpool } from "./run-spool.ts";
import { readSpoolSegment } from "./spool-segment.ts";

/**
 * Answers of lines that wait to be sealed, in a folder of this machine: a process that is killed leaves them to the next
 * run of its batch here. They are encrypted like files, readable for this user alone, and go when they are sealed. They
 * are as much as the run has in memory. Not for loss of power, nor for runs on other machines.
 *
 * It knows too what was claimed and never sent. That is what it does not say, so it counts only if nothing can be missing:
 * the process is gone (its lock is free), the machine is still up, every record is whole; and what is removed is removed
 * from the oldest on, so that a claim never stays behind its sending.
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

interface Place {
	readonly run: number;
	readonly number: number;
}

const SEGMENT = /^(\d+)-(\d+)$/;

/** Segments `<folder>/<batch>/<run>-<number>`, and a lock `<run>.lock` that the run holds. */
export function createAnswerSpool(
	deps: { log: Log },
	/** `boot`: another one after each start of the machine; by default what the system says. */
	options: { folder: string; secret: string; boot?: string },
): AnswerSpool {
	const { log } = deps;
	const { folder, secret } = options;
	const cipher = createFileCipher(secret);
	const boot = options.boot ?? bootId();

	function folderOf(batchId: string): string {
		assert(/^[a-z0-9_-]+$/i.test(batchId), "a batch's id is of our making");
		return join(folder, batchId);
	}
	const fileOf = (batchId: string, { run, number }: Place) => join(folderOf(batchId), `${run}-${number}`);
	const nameOf = (batchId: string, { run, number }: Place) => `${batchId}/${run}-${number}`;
	const lockOf = (batchId: string, run: number) => join(folderOf(batchId), `${run}.lock`);

	/** Oldest first, by run. */
	function placesBefore(batchId: string, run: number): Map<number, Place[]> {
		const places = namesIn(folderOf(batchId))
			.flatMap((name) => {
				const [, of, number] = SEGMENT.exec(name) ?? [];
				return of === undefined ? [] : [{ run: Number(of), number: Number(number) }];
			})
			.filter((place) => place.run < run)
			.sort((a, b) => a.run - b.run || a.number - b.number);
		return Map.groupBy(places, (place) => place.run);
	}

	/** False if it stays: then it is of no use to anybody, and goes with its batch. */
	function remove(path: string): boolean {
		try {
			rmSync(path, { recursive: true, force: true });
			return true;
		} catch (error) {
			log.warn("answers that were put by could not be removed", { path, error });
			return false;
		}
	}

	/** Of one run. */
	async function* leftBy(batchId: string, run: number, places: readonly Place[]): AsyncGenerator<SpooledLine, void> {
		// Asked before it is read: who is gone then writes no more.
		let isComplete = isFree(lockOf(batchId, run));
		const unsent = new Map<string, Claim>();
		for (const place of places) {
			const records = readSpoolSegment<SpoolRecord>(cipher, fileOf(batchId, place), nameOf(batchId, place));
			try {
				for (;;) {
					const { value, done } = await records.next();
					if (done === true) {
						isComplete &&= value;
						break;
					}
					if ("claims" in value) {
						if (value.boot === boot) for (const claim of value.claims) unsent.set(claim.id, claim);
					} else if ("sent" in value) unsent.delete(value.sent);
					else {
						unsent.delete(value.id);
						yield value;
					}
				}
			} finally {
				// Who reads no further would keep its file open, and the space of it when it is removed.
				await records.return(false);
			}
		}
		if (isComplete) for (const { line, id } of unsent.values()) yield { line, id, answer: undefined };
	}

	return {
		open: (batchId, run) =>
			createRunSpool(
				{ cipher, log, boot, remove },
				{
					batchId,
					folder: folderOf(batchId),
					lock: lockOf(batchId, run),
					segment: (number) => ({
						path: fileOf(batchId, { run, number }),
						name: nameOf(batchId, { run, number }),
					}),
				},
			),
		async *left(batchId, run) {
			for (const [of, places] of placesBefore(batchId, run)) yield* leftBy(batchId, of, places);
		},
		taken(batchId, run) {
			for (const [of, places] of placesBefore(batchId, run)) {
				if (places.every((place) => remove(fileOf(batchId, place)))) remove(lockOf(batchId, of));
			}
		},
		batches: () => namesIn(folder),
		forget: (batchId) => void remove(folderOf(batchId)),
	};
}

function namesIn(folder: string): string[] {
	return existsSync(folder) ? readdirSync(folder) : [];
}

/** Undefined where the system does not say. */
function bootId(): string | undefined {
	try {
		return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
	} catch {
		return undefined;
	}
}

/** Whether it is there and nobody holds it: its process is gone. */
function isFree(lockPath: string): boolean {
	const lock = existsSync(lockPath) ? tryFileLock(lockPath) : undefined;
	lock?.release();
	return lock !== undefined;
}
