import { mkdirSync } from "node:fs";
import type { FileLock } from "../base/file-lock.ts";
import { tryFileLock } from "../base/file-lock.ts";
import type { Log } from "../base/log.ts";
import { NamedSlots } from "../base/named-slots.ts";
import type { FileCipher } from "../files/file-cipher.ts";
import type { BatchUsage } from "./batch-record.ts";
import type { SpoolSegment } from "./spool-segment.ts";
import { createSpoolSegment } from "./spool-segment.ts";

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

/** `boot`: of the machine, since its claims count for no longer. */
export type SpoolRecord =
	| SpooledLine
	| { readonly claims: readonly Claim[]; readonly boot: string }
	| { readonly sent: string };

/** Where the run's things lie. */
export interface RunPlaces {
	readonly batchId: string;
	readonly folder: string;
	readonly lock: string;
	/** Of the segment with this number, which is bound to its name. */
	segment(number: number): { readonly path: string; readonly name: string };
}

const OWNER_ONLY_FOLDER = 0o700;

/** `boot`: undefined where the system does not say; then no claim is written. `remove`: false if the file stays. */
export function createRunSpool(
	deps: { cipher: FileCipher; log: Log; boot: string | undefined; remove: (path: string) => boolean },
	places: RunPlaces,
): RunSpool {
	const { cipher, log, boot } = deps;
	/** Paths of segments that are not removed yet, oldest first. */
	const kept: string[] = [];
	/** Those since the last mark. */
	let fresh: string[] = [];
	/** Claims on the disk that are not sent yet. */
	const unsent = new NamedSlots<Claim>();
	let segment: SpoolSegment | undefined;
	let number = 0;
	let lock: FileLock | undefined;
	let isFailing = false;

	function end(): void {
		segment?.close();
		segment = undefined;
	}
	function begin(): SpoolSegment {
		mkdirSync(places.folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
		lock ??= tryFileLock(places.lock);
		// Somebody looks whether it is free.
		if (lock === undefined) throw new Error("the run's lock is taken");
		const { path, name } = places.segment(number);
		number += 1;
		const begun = createSpoolSegment(cipher, path, name);
		kept.push(path);
		fresh.push(path);
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
			if (!isFailing) log.warn("answers of a batch cannot be put by", { batch: places.batchId, error });
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
			if (unsent.get(id) === undefined) return true;
			if (!write({ sent: id })) return false;
			unsent.delete(id);
			return true;
		},
		mark() {
			const until = fresh;
			fresh = [];
			end();
			// The segments with these claims go, and what is sent from now on stands in the next one.
			claim([...unsent]);
			return () => {
				for (const path of until) {
					// An older one is there still: its answers could not be sealed, and it goes first.
					if (kept[0] !== path || !deps.remove(path)) return;
					kept.shift();
				}
			};
		},
		close() {
			end();
			lock?.release();
		},
	};
}
