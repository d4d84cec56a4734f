import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { type BlobStore, createDiskBlobs } from "../../src/files/blob-store.ts";
import { createDiskRoom } from "../../src/files/disk-room.ts";
import { createFiles, type Files } from "../../src/files/files.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";

export const MB = 1024 * 1024;

/** A file store on a disk, with its own database and a clock that the test moves. */
export async function withFiles() {
	const db = await withDatabase();
	const folder = temporaryFolder();
	const store: { -readonly [name in keyof BlobStore]: BlobStore[name] } = { ...createDiskBlobs({ folder }) };
	const test = {
		db,
		folder,
		store,
		/** Free space of the disk, as uploads see it. */
		disk: { bsize: 4096, blocks: 26_214_400, bavail: 26_214_400 },
		limits: { fileBytesMax: 16 * MB, fileAccountBytesMax: 64 * MB, filesBytesMax: 256 * MB },
		nowMs: Date.now(),
		get files(): Files {
			return files;
		},
		/** Makes an account's files older by `ms` by Postgres's clock. */
		passInDatabase: (accountId: string, ms: number): Promise<unknown> =>
			db.sql`update stored_file set expires_at = expires_at - make_interval(secs => ${ms / 1000}) where account_id = ${accountId}`,
		async space(accountId: string): Promise<{ files: number; bytes: number }> {
			const [row] = await db.sql`select files, bytes::int from file_space where account_id = ${accountId}`;
			return { files: row?.files ?? 0, bytes: row?.bytes ?? 0 };
		},
	};
	const files = createFiles(
		{
			statements: db.statements,
			clock: { ...systemClock, wallMs: () => test.nowMs },
			log: silentLog,
			stores: { main: test.store, others: [] },
			limits: () => test.limits,
			room: createDiskRoom(folder, () => test.disk),
		},
		{ secret: "a secret of 32 bytes, as any other" },
	);
	return test;
}

export function sample(bytes: number): Uint8Array<ArrayBuffer> {
	return new Uint8Array(Uint32Array.from({ length: bytes / 4 }, (_, index) => (index * 2_654_435_761) >>> 0).buffer);
}

export const streamOf = (bytes: Uint8Array<ArrayBuffer>) => new Blob([bytes]).stream();
export const bytesOf = (stream: ReadableStream<Uint8Array>) => new Response(stream).bytes();
export const textOf = (stream: ReadableStream<Uint8Array>) => new Response(stream).text();
