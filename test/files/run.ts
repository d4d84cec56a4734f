/**
 * Tests files with a real S3-compatible service: `bun test/files/run.ts ENDPOINT BUCKET KEY_ID SECRET`. The bucket must
 * exist and is left unchanged. The tests passed with MinIO, gofakes3 and moto.
 */
import { systemClock } from "../../src/base/clock.ts";
import { createS3Blobs } from "../../src/files/blob-store.ts";
import { checkBlobStore } from "./blob-contract.ts";

const [endpoint, bucket, accessKeyId, secretAccessKey] = process.argv.slice(2);
if (!endpoint || !bucket || !accessKeyId || !secretAccessKey) {
	console.error("usage: bun test/files/run.ts ENDPOINT BUCKET KEY_ID SECRET");
	process.exit(2);
}
const store = createS3Blobs(
	{ clock: systemClock },
	{ endpoint, bucket, region: "us-east-1", accessKeyId, secretAccessKey },
);
await checkBlobStore(store);
const part = crypto.getRandomValues(new Uint8Array(65_536));
const large = new Uint8Array(Buffer.concat(Array.from({ length: 32 }, () => part)));
const startedMs = performance.now();
for (let number = 0; number < 32; number += 1) await store.put("file_speed", String(number), large);
const wroteMs = performance.now();
for (let number = 0; number < 32; number += 1) await store.read("file_speed", String(number), 0, large.length);
const readMs = performance.now();
await store.removeFile("file_speed");
const mbPerS = (ms: number) => Math.round((64 * 1000) / ms);
console.log(
	`it holds; ${mbPerS(wroteMs - startedMs)} MB/s written, ${mbPerS(readMs - wroteMs)} MB/s read, parts of 2 MB`,
);
