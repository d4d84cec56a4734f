import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createPostgresBlobs } from "../../src/files/blob-store.ts";
import { createFiles } from "../../src/files/files.ts";
import { withDatabase } from "../support/database.ts";
import { bytesOf, MB, sample, streamOf, withFiles } from "./file-store.ts";

const db = await withDatabase();
const owner = { accountId: "acc_halves", keyId: "key_halves" };
const output = { purpose: "batch_output", filename: "out.jsonl" } as const;

/**
 * A file store in Postgres whose connection breaks at the nth statement that transfers bytes, before or after the
 * statement takes effect.
 */
function filesCutAt(nth: number, isDone: boolean) {
	let count = 0;
	const statements = (async (...query: Parameters<typeof db.statements>) => {
		const isBytes = query[0].join("").includes("insert into stored_blob");
		if (isBytes) count += 1;
		if (!isBytes || count !== nth) return db.statements(...query);
		if (isDone) await db.statements(...query);
		throw new Error("the connection broke");
	}) as typeof db.statements;
	const main = createPostgresBlobs({ statements });
	const limits = { fileBytesMax: 16 * MB, fileAccountBytesMax: 64 * MB, filesBytesMax: 256 * MB };
	const deps = { statements: db.statements, clock: systemClock, log: silentLog, limits: () => limits };
	return createFiles(
		{ ...deps, room: { check() {} }, stores: { main, others: [] } },
		{ secret: "a secret of 32 bytes, as any other" },
	);
}

test("a part of a file whose connection broke halfway is complete after a retry", async () => {
	for (const isDone of [false, true]) {
		for (const nth of [1, 2, 3]) {
			const files = filesCutAt(nth, isDone);
			const bytes = sample(600_000);
			const writer = await files.writer(owner, output);
			writer.write(bytes);
			await expect(writer.seal()).rejects.toThrow("the connection broke");
			// Continues to write, as a batch runner does.
			expect(await writer.seal()).toBe(1);
			const record = await writer.finish();
			const read = await bytesOf(files.read(record)).catch((error: unknown) => error);
			expect({ nth, isDone, isWhole: read instanceof Uint8Array && Buffer.compare(read, bytes) === 0 }).toEqual({
				...{ nth, isDone, isWhole: true },
			});
		}
	}
});

test("a file deleted while a part is being written leaves nothing in the store", async () => {
	const at = await withFiles();
	const { files, store } = at;
	const { put } = store;
	for (const how of ["deleted", "ended", "deleted while an upload is put"] as const) {
		const begun = Promise.withResolvers<string>();
		const held = Promise.withResolvers<void>();
		store.put = async (fileId, blob, bytes) => {
			begun.resolve(fileId);
			await held.promise;
			await put(fileId, blob, bytes);
		};
		const write = async () => {
			if (how === "deleted while an upload is put") return files.create(owner, output, streamOf(sample(65_536)));
			const writer = await files.writer(owner, output);
			writer.write(sample(65_536));
			return writer.seal();
		};
		const writing = write().catch((error: unknown) => error);
		const fileId = await begun.promise;
		if (how === "ended") {
			at.nowMs += 40 * 24 * 3600_000;
			await at.passInDatabase(owner.accountId, 40 * 24 * 3600_000);
			await files.sweep();
		} else expect(await files.remove(owner.accountId, fileId)).toBe(true);
		held.resolve();
		expect(await writing).toMatchObject({ code: "conflict" });
		store.put = put;
		await files.sweep();
		expect({ how, left: existsSync(join(at.folder, fileId)) }).toEqual({ how, left: false });
		expect(await at.db.sql`select 1 from stored_file`).toHaveLength(0);
	}
});
