import { describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createDiskBlobs, createPostgresBlobs, createS3Blobs } from "../../src/files/blob-store.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { startObjectStorage } from "../support/object-storage.ts";
import { checkBlobStore } from "./blob-contract.ts";

const db = await withDatabase();
const folder = temporaryFolder();
const storage = startObjectStorage();
const bucket = { endpoint: storage.url, bucket: "files", region: "us-east-1", accessKeyId: "id", secretAccessKey: "s" };

describe("the bytes of a stored file", () => {
	test("on a disk are read completely or not at all, by this user only", async () => {
		const store = createDiskBlobs({ folder: join(folder, "files") });
		await checkBlobStore(store);
		await store.put("file_a", "0-x", new Uint8Array(1));
		const mode = (path: string) => statSync(join(folder, "files", path)).mode & 0o777;
		expect([mode(""), mode("file_a"), mode("file_a/0-x")]).toEqual([0o700, 0o700, 0o600]);
	});

	test("in Postgres are read completely or not at all", async () => {
		await checkBlobStore(createPostgresBlobs({ statements: db.statements }));
		expect(await db.sql`select 1 from stored_blob`).toHaveLength(0);
	});

	test("in a bucket are read completely or not at all", async () => {
		await checkBlobStore(createS3Blobs({ clock: systemClock }, bucket));
		expect(storage.objects.size).toBe(0);
	});
});
