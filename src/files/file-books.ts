import { Fault } from "../base/fault.ts";
import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import type { FileOwner, FilePurpose, FileRecord } from "./file-record.ts";

export interface FileLimits {
	readonly fileBytesMax: number;
	readonly fileAccountBytesMax: number;
	readonly filesBytesMax: number;
}

export interface FilePart {
	readonly number: number;
	/** Offset of the part in the file. */
	readonly start: number;
	readonly bytes: number;
	readonly blob: string;
}

/** Selects a page of an account's files. */
export interface FileQuery {
	readonly purpose: FilePurpose | null;
	/** Id of the file after which the page starts. */
	readonly after: string | null;
	readonly newestFirst: boolean;
	readonly limit: number;
}

export interface BegunFile extends FileOwner, Pick<FileRecord, "id" | "purpose" | "filename" | "store"> {
	readonly lifetimeMs: number;
}

/** Records of files in Postgres. Each method is one SQL statement, which may be repeated. */
export type FileBooks = ReturnType<typeof createFileBooks>;

/** A record and the number of its recorded parts. */
type FileRow = FileRecord & { readonly parts: number };

const PARTS_PAGE = 256;
const FILES_PER_ACCOUNT_MAX = 10_000;

export function createFileBooks({ statements, limits }: { statements: Statements; limits(): FileLimits }) {
	return {
		/** Records a file that will be written. Fault conflict if the account has too many files. */
		async begin(file: BegunFile): Promise<void> {
			const rows = await statements<{ begun: boolean }>`
				select file_begin(${file.id}, ${file.accountId}, ${file.keyId}, ${file.purpose}, ${file.filename}, ${file.store},
					${file.lifetimeMs}, ${FILES_PER_ACCOUNT_MAX}) as begun`;
			if (onlyRow(rows).begun) return;
			throw new Fault("conflict", "This account has reached its maximum number of files. Delete some files.");
		},

		/**
		 * Records a stored part. Faults: conflict (another writer, file deleted, account's space full), overloaded (total
		 * space full).
		 */
		async seal(fileId: string, part: Omit<FilePart, "start">): Promise<void> {
			if (!(await this.sealUnlessTaken(fileId, part))) throw notSealed(fileId, part.number, "taken");
		},

		/** Like `seal`, but returns false if another writer recorded this part first. */
		async sealUnlessTaken(fileId: string, part: Omit<FilePart, "start">): Promise<boolean> {
			const { fileAccountBytesMax, filesBytesMax } = limits();
			const rows = await statements<{ outcome: string }>`
				select file_seal(${fileId}, ${part.number}, ${part.bytes}, ${part.blob}, ${fileAccountBytesMax}, ${filesBytesMax}) as outcome`;
			const { outcome } = onlyRow(rows);
			if (outcome === "sealed") return true;
			if (outcome === "taken") return false;
			throw notSealed(fileId, part.number, outcome);
		},

		async emptyParts(fileId: string): Promise<number[]> {
			const rows = await statements<{ number: number }>`
				select number from stored_file_part where file_id = ${fileId} and bytes = 0`;
			return rows.map(({ number }) => number);
		},

		/**
		 * Publishes the file; undefined if it may no longer be written. `lifetimeMs` counts from the file's creation;
		 * undefined keeps the lifetime set at the creation.
		 */
		async finish(fileId: string, lifetimeMs: number | undefined): Promise<FileRecord | undefined> {
			const [row] = await statements<{ file: FileRow }>`
				update stored_file f set state = 'ready', expires_at = coalesce(
					created_at + ${lifetimeMs ?? null}::double precision * interval '1 millisecond', expires_at)
				where id = ${fileId} and state in ('writing', 'ready') returning file_fields(f) as file`;
			return row?.file;
		},

		/** Finds a file unless it has expired by this process's clock and by Postgres's: one wrong clock hides no files. */
		async find(accountId: string, fileId: string, nowMs: number): Promise<FileRecord | undefined> {
			const [row] = await statements<{ file: FileRow }>`
				select file_fields(f) as file from stored_file f
				where id = ${fileId} and account_id = ${accountId} and state = 'ready'
					and expires_at > least(to_timestamp(${nowMs}::double precision / 1000.0), now())`;
			return row?.file;
		},

		/** True until the file is deleted, or removed after its expiry. */
		async isKept(fileId: string): Promise<boolean> {
			const rows = await statements`select 1 from stored_file where id = ${fileId} and state <> 'removed'`;
			return rows.length > 0;
		},

		async findOpen(fileId: string): Promise<FileRow | undefined> {
			const [row] = await statements<{ file: FileRow }>`
				select file_fields(f) as file from stored_file f where id = ${fileId} and state = 'writing'`;
			return row?.file;
		},

		async list(accountId: string, query: FileQuery, nowMs: number): Promise<FileRecord[]> {
			const { purpose, after, limit } = query;
			const rows = query.newestFirst
				? await statements<{ file: FileRow }>`
					select file_fields(f) as file from stored_file f
					where account_id = ${accountId} and state = 'ready' and expires_at > least(to_timestamp(${nowMs}::double precision / 1000.0), now())
						and (${purpose}::text is null or purpose = ${purpose}) and (${after}::text is null or id < ${after})
					order by id desc limit ${limit}`
				: await statements<{ file: FileRow }>`
					select file_fields(f) as file from stored_file f
					where account_id = ${accountId} and state = 'ready' and expires_at > least(to_timestamp(${nowMs}::double precision / 1000.0), now())
						and (${purpose}::text is null or purpose = ${purpose}) and (${after}::text is null or id > ${after})
					order by id limit ${limit}`;
			return rows.map(({ file }) => file);
		},

		/** Parts with bytes between `start` and `end`; only the first page of them if there are many. */
		parts(fileId: string, start: number, end: number): Promise<FilePart[]> {
			return statements<FilePart>`
				select number, start::float8 as start, bytes, blob from stored_file_part
				where file_id = ${fileId} and start < ${end} and start + bytes > ${start} order by number limit ${PARTS_PAGE}`;
		},

		/** Hides the file. Returns the store that has its bytes; undefined if there was no such file. */
		async remove(accountId: string, fileId: string, nowMs: number): Promise<string | undefined> {
			const [row] = await statements<{ store: string }>`
				update stored_file set state = 'removed', expires_at = least(expires_at, to_timestamp(${nowMs}::double precision / 1000.0), now())
				where id = ${fileId} and account_id = ${accountId} and state <> 'removed' returning store`;
			return row?.store;
		},

		/**
		 * Marks expired files in these stores as removed and returns them. Both clocks must agree, because deleted bytes
		 * cannot be restored.
		 */
		ended(stores: readonly string[], nowMs: number, limit: number): Promise<{ id: string; store: string }[]> {
			return statements<{ id: string; store: string }>`
				update stored_file set state = 'removed' where id in (
					select id from stored_file where expires_at <= least(to_timestamp(${nowMs}::double precision / 1000.0), now())
						and store = any (string_to_array(${stores.join(" ")}, ' '))
					order by expires_at limit ${limit} for update skip locked)
				returning id, store`;
		},

		/** Moves a file whose bytes could not be deleted to the end, so that other files are deleted first. */
		async putBehind(fileId: string, nowMs: number): Promise<void> {
			await statements`
				update stored_file set expires_at = least(to_timestamp(${nowMs}::double precision / 1000.0), now())
				where id = ${fileId} and state = 'removed'`;
		},

		/** Deletes the record. Call it after the bytes were deleted. */
		async forget(fileId: string): Promise<void> {
			await statements`select file_forget(${fileId})`;
		},
	};
}

function notSealed(fileId: string, part: number, outcome: string | undefined): Fault {
	if (outcome === "account_full")
		return new Fault("conflict", "The files of this account have reached their storage limit. Delete some files.");
	if (outcome === "full") {
		return new Fault("overloaded", "The service has no storage left for files. Try again later.", {
			retryAfterS: 600,
			private: "the files of all accounts together take as much as they may",
		});
	}
	return new Fault("conflict", "The file was deleted while it was being written.", {
		private: `part ${part} of ${fileId}: ${outcome}`,
	});
}
