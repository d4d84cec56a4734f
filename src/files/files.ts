import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";
import type { BlobStore } from "./blob-store.ts";
import type { DiskRoom } from "./disk-room.ts";
import { createFileBooks, type FileLimits, type FileQuery } from "./file-books.ts";
import { createFileCipher } from "./file-cipher.ts";
import type { FileOwner, FilePurpose, FileRecord } from "./file-record.ts";
import { type ByteRange, createFileWriter, FILE_PART_BYTES, type FileWriter, readFile } from "./file-transfer.ts";

const FILE_LIFETIME_MS = 30 * 24 * 3600_000;

/** Longer than the slowest upload that is accepted. */
const UPLOAD_MS_MAX = 6 * 3600_000;

export interface NewFile {
	/** Id that an earlier attempt used, so that this attempt creates no second file. */
	readonly id?: string;
	readonly purpose: FilePurpose;
	readonly filename: string;
	readonly lifetimeMs?: number;
}

export type Files = ReturnType<typeof createFiles>;

export interface FilesDeps {
	readonly statements: Statements;
	readonly clock: Clock;
	readonly log: Log;
	/** `main` gets new files; `others` may still contain older files. */
	readonly stores: { readonly main: BlobStore; readonly others: readonly BlobStore[] };
	limits(): FileLimits;
	/** The disk of DATA_DIR, which uploads could fill. */
	readonly room: Pick<DiskRoom, "check">;
}

const SWEPT_AT_ONCE = 200;
const SWEEP_MS = 60_000;

/**
 * Encrypted files of accounts, each with a lifetime. All encryption keys derive from `secret`, equal on all instances.
 */
export function createFiles(deps: FilesDeps, options: { secret: string }) {
	const { clock, log, stores } = deps;
	const books = createFileBooks(deps);
	const cipher = createFileCipher(options.secret);

	function storeOf(name: string): BlobStore {
		const store = [stores.main, ...stores.others].find((one) => one.name === name);
		if (store !== undefined) return store;
		throw new Fault("service_unavailable", "The file cannot be read at the moment. Try again later.", {
			private: `its bytes are in a store that is not connected: ${name}`,
		});
	}

	const writerOf = (file: Pick<FileRecord, "id" | "store" | "bytes"> & { readonly parts: number }) =>
		createFileWriter({ books, cipher, blobs: storeOf(file.store) }, file);

	async function erase(fileId: string, store: string): Promise<void> {
		await storeOf(store).removeFile(fileId);
		await books.forget(fileId);
	}

	/** Deletes the bytes again: another call that deleted the file could not see a blob that was being stored then. */
	async function leaveNothing({ accountId }: FileOwner, fileId: string): Promise<void> {
		if (!(await files.remove(accountId, fileId))) await stores.main.removeFile(fileId);
	}

	const files = {
		/**
		 * Stores all bytes of a stream, or nothing if the stream fails. `conclude` is called at the stream's end and
		 * returns the lifetime. Faults: payload_too_large, service_unavailable at the disk's reserve, those of a writer's
		 * `seal`, conflict (too many files), and errors of `bytes` and `conclude`.
		 */
		async create(
			owner: FileOwner,
			file: Omit<NewFile, "id" | "lifetimeMs">,
			bytes: AsyncIterable<Uint8Array>,
			conclude: (bytes: number) => Promise<{ lifetimeMs?: number }> = async () => ({}),
		): Promise<FileRecord> {
			// A short lifetime during the upload, so that after a crash the account's space is soon freed.
			deps.room.check(0);
			const writer = await files.writer(owner, { ...file, lifetimeMs: UPLOAD_MS_MAX });
			try {
				let total = 0;
				for await (const piece of bytes) {
					total += piece.length;
					const { fileBytesMax } = deps.limits();
					if (total > fileBytesMax) throw fileTooLarge(fileBytesMax);
					if (!writer.write(piece)) continue;
					deps.room.check(FILE_PART_BYTES);
					await writer.seal();
				}
				const { lifetimeMs = FILE_LIFETIME_MS } = await conclude(total);
				return await writer.finish(lifetimeMs);
			} catch (error) {
				await leaveNothing(owner, writer.fileId).catch((failure) => {
					log.warn("a failed upload could not be deleted; it is deleted when it expires", { error: failure });
				});
				throw error;
			}
		},
		/** Creates a file that is written part by part. Fault conflict if the account has too many files. */
		async writer({ accountId, keyId }: FileOwner, file: NewFile): Promise<FileWriter> {
			const { id = newId("file"), purpose, filename, lifetimeMs = FILE_LIFETIME_MS } = file;
			const store = stores.main.name;
			await books.begin({ id, accountId, keyId, purpose, filename, store, lifetimeMs });
			return writerOf({ id, store, parts: 0, bytes: 0 });
		},
		/** Returns a writer that continues after the last recorded part; undefined if the file is finished or deleted. */
		async resume(fileId: string): Promise<FileWriter | undefined> {
			const file = await books.findOpen(fileId);
			return file && writerOf(file);
		},
		find: (accountId: string, fileId: string) => books.find(accountId, fileId, clock.wallMs()),
		list: (accountId: string, query: FileQuery) => books.list(accountId, query, clock.wallMs()),
		/** Streams a file; fails if it is deleted during the read. Fault service_unavailable without its store. */
		read(record: FileRecord, range: ByteRange = { start: 0, end: record.bytes }): ReadableStream<Uint8Array> {
			assert(range.start >= 0 && range.end <= record.bytes, "a range lies in its file");
			return readFile({ books, cipher, blobs: storeOf(record.store) }, record.id, range);
		},
		/** Deletes a file, even one that is being written. False if there is none. */
		async remove(accountId: string, fileId: string): Promise<boolean> {
			const store = await books.remove(accountId, fileId, clock.wallMs());
			if (store === undefined) return false;
			// The file is already hidden. If its bytes cannot be deleted, `sweep` tries again.
			await erase(fileId, store).catch((error) =>
				log.warn("the bytes of a deleted file could not be removed yet; trying again", { error }),
			);
			return true;
		},
		/** Deletes expired files, at most some hundred; resolves with their number. */
		async sweep(): Promise<number> {
			// Only connected stores, so that a store without a connection does not block the others.
			const connected = [stores.main, ...stores.others].map(({ name }) => name);
			let swept = 0;
			for (const { id, store } of await books.ended(connected, clock.wallMs(), SWEPT_AT_ONCE)) {
				try {
					await erase(id, store);
					swept += 1;
				} catch (error) {
					log.warn("an expired file could not be deleted; trying again", { fileId: id, error });
					await books.putBehind(id, clock.wallMs());
				}
			}
			return swept;
		},
	};
	return files;
}

function fileTooLarge(bytesMax: number): Fault {
	return new Fault("payload_too_large", "The file is larger than {count} MB.", {
		values: { count: Math.floor(bytesMax / (1024 * 1024)) },
		param: "file",
	});
}

/** Deletes the bytes of expired files. Instances share the work. */
export function startFileSweep({ files, clock, log }: { files: Pick<Files, "sweep">; clock: Clock; log: Log }) {
	let cancel: (() => void) | undefined;
	let sweeping: Promise<void> | undefined;
	let stopped = false;

	async function sweep(): Promise<void> {
		try {
			while (!stopped && (await files.sweep()) > 0);
		} catch (error) {
			log.debug("expired files could not be read; trying again", { error });
		}
	}

	function wake(): void {
		if (stopped) return;
		cancel = clock.after(SWEEP_MS, () => (sweeping = sweep().then(wake)));
	}

	wake();
	return {
		async stop() {
			stopped = true;
			cancel?.();
			await sweeping;
		},
	};
}
