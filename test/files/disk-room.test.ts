import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { createDiskRoom } from "../../src/files/disk-room.ts";
import { MB, sample, streamOf, withFiles } from "./file-store.ts";

const owner = { accountId: "acc_full", keyId: "key_full" };
const upload = { purpose: "batch", filename: "in.jsonl" } as const;
const GIB = 1024 * MB;

test("an upload that reaches the disk's reserve ends with 503 and leaves nothing", async () => {
	const at = await withFiles();
	const { files, store, disk } = at;
	const { put } = store;
	disk.bavail = (GIB + 5 * MB) / disk.bsize;
	store.put = async (fileId, blob, bytes) => {
		await put(fileId, blob, bytes);
		disk.bavail -= Math.ceil(bytes.length / disk.bsize);
	};
	const full = { code: "service_unavailable", retryAfterS: 60 };
	await expect(files.create(owner, upload, streamOf(sample(10 * MB)))).rejects.toMatchObject(full);
	expect(disk.bavail * disk.bsize).toBeGreaterThan(GIB - MB);
	expect(readdirSync(at.folder)).toEqual([]);
	expect(await at.space(owner.accountId)).toEqual({ files: 0, bytes: 0 });
	disk.bavail = (GIB - MB) / disk.bsize;
	await expect(files.create(owner, upload, streamOf(sample(4)))).rejects.toMatchObject(full);
	// Answers of batches are stored even then, because they are paid for.
	const writer = await files.writer(owner, { purpose: "batch_output", filename: "out.jsonl" });
	writer.write(sample(400));
	expect(await writer.seal()).toBe(1);
});

for (const [gib, freeGib, isWarned] of [
	[100, 5, false],
	[100, 3.9, true],
	[10, 2.1, false],
	[10, 1.9, true],
] as const)
	test(`a disk of ${gib} GiB with ${freeGib} free ${isWarned ? "warns" : "does not warn"}`, () => {
		const room = createDiskRoom("/", () => ({ bsize: MB, blocks: gib * 1024, bavail: freeGib * 1024 }));
		expect(room.problem() !== undefined).toBe(isWarned);
		room.check(0);
	});
