import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createDiskBlobs } from "../../src/files/disk-blobs.ts";
import { createFiles } from "../../src/files/files.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";

const MB = 1024 * 1024;
const db = await withDatabase();
const folder = temporaryFolder();
const limits = {
	fileBytesMax: 16 * MB,
	fileAccountBytesMax: 64 * MB,
	filesBytesMax: 256 * MB,
	filesPerAccountMax: 100,
};
const files = createFiles(
	{
		statements: db.statements,
		clock: systemClock,
		log: silentLog,
		stores: { main: createDiskBlobs({ folder }), others: [] },
		limits: () => limits,
	},
	{ secret: "a secret of 32 bytes, as any other" },
);
const owner = { accountId: "acc_files", keyId: "key_files" };
const newFile = { purpose: "batch", filename: "in.jsonl" } as const;

/** Bytes that are different everywhere. */
function sample(bytes: number): Uint8Array<ArrayBuffer> {
	return new Uint8Array(Uint32Array.from({ length: bytes / 4 }, (_, index) => (index * 2_654_435_761) >>> 0).buffer);
}
const streamOf = (bytes: Uint8Array<ArrayBuffer>) => new Blob([bytes]).stream();
const textOf = (stream: ReadableStream<Uint8Array>) => new Response(stream).text();

describe("a file", () => {
	test("is read as it was written, in any range of it", async () => {
		const bytes = sample(9 * MB + 20);
		const record = await files.create(owner, newFile, streamOf(bytes));
		expect(record).toMatchObject({ ...owner, ...newFile, bytes: bytes.length });
		expect(await files.find(owner.accountId, record.id)).toEqual(record);
		for (const [start, end] of [
			[0, bytes.length],
			[0, 1],
			[65_535, 65_537],
			[4 * MB - 1, 4 * MB + 1],
			[8 * MB + 5, bytes.length],
			[7, 7],
		] as const) {
			const read = await new Response(files.read(record, { start, end })).bytes();
			expect(Buffer.compare(read, bytes.subarray(start, end))).toBe(0);
		}
	});

	test("is not legible where it lies", async () => {
		const record = await files.create(owner, newFile, streamOf(new TextEncoder().encode("a prompt of somebody's")));
		const stored = readdirSync(join(folder, record.id)).map((name) => readFileSync(join(folder, record.id, name)));
		expect(stored.length).toBe(1);
		expect(Buffer.concat(stored).includes("prompt")).toBe(false);
	});
});

describe("a file that is written part by part", () => {
	test("goes on after the last sealed part; what was not sealed is lost", async () => {
		const writer = await files.writer(owner, { purpose: "batch_output", filename: "out.jsonl" });
		writer.write("one\n");
		expect(await writer.seal()).toBe(1);
		writer.write("lost\n");
		const resumed = await files.resume(writer.fileId);
		expect(resumed?.parts()).toBe(1);
		resumed?.write("two\n");
		expect(await resumed?.seal()).toBe(2);
		expect(await files.find(owner.accountId, writer.fileId)).toBeUndefined();
		const record = await resumed?.finish();
		if (record === undefined) throw new Error("it is finished");
		expect(await textOf(files.read(record))).toBe("one\ntwo\n");
		expect(await files.resume(writer.fileId)).toBeUndefined();
	});

	test("has one writer: the slower one of two seals nothing", async () => {
		const writer = await files.writer(owner, { purpose: "batch_output", filename: "out.jsonl" });
		const other = await files.resume(writer.fileId);
		writer.write("mine\n");
		other?.write("theirs\n");
		await writer.seal();
		expect(other?.seal()).rejects.toMatchObject({ code: "conflict" });
		expect(await textOf(files.read(await writer.finish()))).toBe("mine\n");
	});
});
