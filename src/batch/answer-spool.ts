import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { assert } from "../base/assert.ts";
import type { FileLock } from "../base/file-lock.ts";
import { tryFileLock } from "../base/file-lock.ts";
import type { Log } from "../base/log.ts";
import { createFileCipher } from "../files/file-cipher.ts";
import type { BatchUsage } from "./batch-record.ts";
import type { SpoolSegment } from "./spool-segment.ts";
import { createSpoolSegment, readSpoolSegment } from "./spool-segment.ts";

/** A line and the request that was to carry it. */
export interface Claim {
	readonly line: number;
	/** UUID. */
	readonly id: string;
}

/** What became of a line that no sealed part tells of yet. */
export interface SpooledLine extends Claim {
	/** Undefined if nothing was charged and the line may be sent again. */
	readonly answer: SpooledAnswer | undefined;
}

export interface SpooledAnswer {
	readonly file: "output" | "error";
	/** As it is to stand in that file. */
	readonly text: string;
	readonly usage: BatchUsage | undefined;
}

/** What one run puts by. What is written is with the system when a call returns; a disk that takes nothing is logged. */
export interface RunSpool {
	add(line: SpooledLine): void;
	/** These are about to be claimed. One of which `sends` is not called afterwards was not sent. */
	claims(claims: readonly Claim[]): void;
	/** It is about to be sent. False if it must not be, because what a crash leaves would say that it was not. */
	sends(id: string): boolean;
	/** Gives what removes all that was added until now: for when it is sealed. */
	mark(): () => void;
	close(): void;
}

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

type SpoolRecord =
	| SpooledLine
	| { readonly claims: readonly Claim[]; readonly boot: string }
	| { readonly sent: string };

interface Place {
	readonly run: number;
	readonly number: number;
}

const OWNER_ONLY_FOLDER = 0o700;
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

	function isGone(batchId: string, run: number): boolean {
		const lock = existsSync(lockOf(batchId, run)) ? tryFileLock(lockOf(batchId, run)) : undefined;
		lock?.release();
		return lock !== undefined;
	}

	/** Of one run. */
	async function* leftBy(batchId: string, run: number, places: readonly Place[]): AsyncGenerator<SpooledLine, void> {
		// Asked before it is read: who is gone then writes no more.
		let isComplete = isGone(batchId, run);
		const unsent = new Map<string, Claim>();
		for (const place of places) {
			const records = readSpoolSegment<SpoolRecord>(cipher, fileOf(batchId, place), nameOf(batchId, place));
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
		}
		if (isComplete) for (const { line, id } of unsent.values()) yield { line, id, answer: undefined };
	}

	return {
		open(batchId, run) {
			/** Not removed yet, oldest first. */
			const places: Place[] = [];
			/** Those since the last mark. */
			let fresh: Place[] = [];
			/** Claims on the disk that are not sent yet. */
			const unsent = new Map<string, Claim>();
			let segment: SpoolSegment | undefined;
			let number = 0;
			let lock: FileLock | undefined;
			let isFailing = false;

			function end(): void {
				segment?.close();
				segment = undefined;
			}
			function begin(): SpoolSegment {
				mkdirSync(folderOf(batchId), { recursive: true, mode: OWNER_ONLY_FOLDER });
				lock ??= tryFileLock(lockOf(batchId, run));
				// Somebody looks whether it is free.
				if (lock === undefined) throw new Error("the run's lock is taken");
				const place = { run, number };
				number += 1;
				const begun = createSpoolSegment(cipher, fileOf(batchId, place), nameOf(batchId, place));
				places.push(place);
				fresh.push(place);
				return begun;
			}
			function write(record: SpoolRecord): boolean {
				try {
					segment ??= begin();
					segment.append(record);
					isFailing = false;
					return true;
				} catch (error) {
					// What is behind a torn record is not read: the next one goes elsewhere.
					end();
					if (!isFailing) log.warn("answers of a batch cannot be put by", { batch: batchId, error });
					isFailing = true;
					return false;
				}
			}
			function claim(claims: readonly Claim[]): void {
				if (boot === undefined || claims.length === 0 || !write({ claims, boot })) return;
				for (const one of claims) unsent.set(one.id, one);
			}
			return {
				add(line) {
					unsent.delete(line.id);
					write(line);
				},
				claims: claim,
				sends(id) {
					if (!unsent.has(id)) return true;
					if (!write({ sent: id })) return false;
					unsent.delete(id);
					return true;
				},
				mark() {
					const until = fresh;
					fresh = [];
					end();
					// The segments with these claims go, and what is sent from now on stands in the next one.
					claim([...unsent.values()]);
					return () => {
						for (const place of until) {
							// An older one is there still: its answers could not be sealed, and it goes first.
							if (places[0] !== place || !remove(fileOf(batchId, place))) return;
							places.shift();
						}
					};
				},
				close() {
					end();
					lock?.release();
				},
			};
		},
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
