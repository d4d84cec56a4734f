import { DiskFull, type JournalDisk, type JournalFile } from "../../src/ledger/journal-disk.ts";
import { RecordKind } from "../../src/ledger/journal-record.ts";
import type { JournalRoot } from "../../src/ledger/journal-root.ts";
import { decodeRecords } from "../ledger/fixture.ts";
import type { Random } from "../support/random.ts";

interface File {
	bytes: Buffer;
	length: number;
	/** Number of bytes that would survive a power loss. */
	synced: number;
}

interface Folder {
	readonly id: string;
	readonly epoch: number;
	readonly files: Map<string, File>;
	owner: object | undefined;
}

export interface Appended {
	readonly kind: RecordKind;
	readonly id: string;
	/** Amount that may be delivered, according to a PROGRESS record. */
	readonly bound: number;
	/** Amount that was certainly delivered, according to a PROGRESS record. */
	readonly delivered: number;
}

export type SimDisk = ReturnType<typeof createSimDisk>;

/** Calls `done` later, unless the owning process has died by then. */
export type Delay = (label: string, done: () => void) => void;

const RESERVE_BYTES = 4_000;

/** A machine's disk, which outlives processes. Each process accesses it through `journalRootOf`. */
export function createSimDisk() {
	const folders = new Map<string, Folder>();
	const lastEpochs = new Map<string, number>();
	const keyOf = (id: string, epoch: number) => `${id}/${epoch}`;
	const disk = {
		room: Number.POSITIVE_INFINITY,
		/** Gives `process` access. After the process's death, its calls change nothing and its appends are lost. */
		journalRootOf: (
			process: { readonly dead: boolean },
			onAppend: (record: Appended) => void,
			delay: Delay,
		): JournalRoot => ({
			list: () =>
				[...folders.values()]
					.map(({ id, epoch }) => ({ id, epoch, folder: keyOf(id, epoch) }))
					.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.epoch - b.epoch)),
			isHeldByAnother: () => false,
			isHere: () => false,
			lastEpoch: (id) => lastEpochs.get(id) ?? 0,
			claim(id, epoch, { create }) {
				const key = keyOf(id, epoch);
				let folder = folders.get(key);
				if (!folder && !create) return undefined;
				if (create && !process.dead) lastEpochs.set(id, epoch);
				if (!folder) {
					folder = { id, epoch, files: new Map(), owner: undefined };
					if (!process.dead) folders.set(key, folder);
				}
				if (folder.owner !== undefined || (!create && folder.files.size === 0)) return undefined;
				const claimed = folder;
				if (!process.dead) claimed.owner = process;
				const release = () => {
					if (claimed.owner === process) claimed.owner = undefined;
				};
				const isThere = () => folders.get(key) === claimed;
				return {
					disk: folderDisk(claimed, process, onAppend, delay),
					folder: key,
					owner: { id, epoch },
					isAtHome: true,
					began: undefined,
					isCopy: false,
					isThere,
					release,
				};
			},
		}),
		/** Frees the locks that a dead process held. */
		releaseAll(process: object) {
			for (const folder of folders.values()) if (folder.owner === process) folder.owner = undefined;
		},
		/** Simulates a power loss: loses, cuts off or damages data that was not synced, at random. */
		losePower(random: Random) {
			for (const file of allFiles()) {
				const kept = random.int(file.synced, file.length);
				if (kept > file.synced && random.chance(0.3)) flip(file, random.int(file.synced, kept - 1), random);
				file.length = kept;
			}
		},
		/** Cuts off, or changes a byte near, the end of a file that no process has open. */
		damage(random: Random) {
			const candidates = [...folders.values()].filter((folder) => folder.owner === undefined);
			const files = candidates.flatMap((folder) => [...folder.files.values()]).filter((file) => file.length > 0);
			if (files.length === 0) return;
			const file = random.pick(files);
			const from = Math.max(0, file.length - 600);
			if (random.chance(0.5)) file.length = random.int(from, file.length);
			else flip(file, random.int(from, file.length - 1), random);
		},
		/** Ids of requests whose settlement can be read from the disk, and of those whose admission can be read. */
		readable() {
			const settled = new Set<string>();
			const admitted = new Set<string>();
			for (const file of allFiles()) {
				for (const { kind, body } of decodeRecords(file.bytes.subarray(0, file.length)).records) {
					const { id } = JSON.parse(body) as { id: string };
					if (kind === RecordKind.admit) admitted.add(id);
					else if (kind === RecordKind.settle) settled.add(id);
				}
			}
			return { settled, admitted };
		},
		wipe() {
			folders.clear();
			lastEpochs.clear();
		},
		isEmpty: () => [...folders.values()].every((folder) => folder.files.size === 0),
	};

	function* allFiles(): Iterable<File> {
		for (const folder of folders.values()) yield* folder.files.values();
	}

	function flip(file: File, at: number, random: Random): void {
		file.bytes[at] = (file.bytes[at] ?? 0) ^ (1 << random.int(0, 7));
	}

	function folderDisk(
		folder: Folder,
		process: { readonly dead: boolean },
		onAppend: (record: Appended) => void,
		delay: Delay,
	): JournalDisk {
		let reserve = RESERVE_BYTES;
		return {
			list: () => [...folder.files.keys()].sort(),
			read(name) {
				const file = folder.files.get(name);
				if (!file) throw new Error(`no file ${name}`);
				return Uint8Array.from(file.bytes.subarray(0, file.length));
			},
			create: (name) => createFile(folder, name, process, onAppend, delay),
			remove(name) {
				if (!process.dead) folder.files.delete(name);
			},
			isWhole: () => true,
			destroy() {
				if (!process.dead) folders.delete(keyOf(folder.id, folder.epoch));
			},
			freeReserve() {
				if (reserve === 0) return false;
				disk.room += reserve;
				reserve = 0;
				return true;
			},
			keepReserve() {
				if (reserve === 0 && disk.room < RESERVE_BYTES) return false;
				disk.room -= RESERVE_BYTES - reserve;
				reserve = RESERVE_BYTES;
				return true;
			},
		};
	}

	function createFile(
		folder: Folder,
		name: string,
		process: { readonly dead: boolean },
		onAppend: (record: Appended) => void,
		delay: Delay,
	): JournalFile {
		const file: File = { bytes: Buffer.alloc(8_192), length: 0, synced: 0 };
		if (disk.room <= 0) throw new DiskFull("no room for a file");
		if (!process.dead) folder.files.set(name, file);
		return {
			append(buffer, length) {
				if (process.dead) return;
				const bytes = buffer.subarray(0, length);
				if (bytes.length > disk.room) throw new DiskFull("no room");
				disk.room -= bytes.length;
				if (file.length + bytes.length > file.bytes.length) {
					file.bytes = Buffer.concat([file.bytes, Buffer.alloc(file.bytes.length + bytes.length)]);
				}
				file.bytes.set(bytes, file.length);
				file.length += bytes.length;
				for (const record of appendedOf(bytes)) onAppend(record);
			},
			sync() {
				const upTo = file.length;
				return new Promise((resolve) =>
					delay("sync", () => {
						file.synced = Math.max(file.synced, upTo);
						resolve();
					}),
				);
			},
			close() {},
		};
	}

	return disk;
}

function appendedOf(bytes: Uint8Array): Appended[] {
	const { records, intactBytes } = decodeRecords(bytes);
	if (records.length === 0 || intactBytes !== bytes.length) throw new Error("what is appended are whole records");
	return records.map(({ kind, body }) => {
		const { id, bound, delivered } = JSON.parse(body) as { id: string; bound?: number; delivered?: number };
		return { kind, id, bound: bound ?? 0, delivered: delivered ?? 0 };
	});
}
