import { expect } from "bun:test";
import { type BlobStore, BytesLost } from "../../src/files/blob-store.ts";

export async function checkBlobStore(store: BlobStore): Promise<void> {
	const bytes = crypto.getRandomValues(new Uint8Array(65_536));
	const long = new Uint8Array(Buffer.concat(Array.from({ length: 17 }, () => bytes)));
	const failure = (work: Promise<unknown>) => work.then(() => undefined).catch((error) => error);

	await store.put("file_a", "0-x", bytes);
	await store.put("file_a", "0-x", bytes);
	await store.put("file_a", "1-y", long);
	await store.put("file_ab", "0-x", bytes);
	for (const [start, end] of [
		[0, bytes.length],
		[100, 101],
		[65_535, 65_536],
	] as const)
		expect(Buffer.compare(await store.read("file_a", "0-x", start, end), bytes.subarray(start, end))).toBe(0);
	for (const [start, end] of [
		[0, long.length],
		[262_143, 262_145],
		[524_288, 1_000_000],
	] as const)
		expect(Buffer.compare(await store.read("file_a", "1-y", start, end), long.subarray(start, end))).toBe(0);

	// A range that is not completely in the blob cannot be read.
	expect(await failure(store.read("file_a", "0-x", 65_530, 65_540))).toBeInstanceOf(BytesLost);
	expect(await failure(store.read("file_a", "none", 0, 1))).toBeInstanceOf(BytesLost);

	await store.removeFile("file_a");
	await store.removeFile("file_a");
	await store.removeFile("file_none");
	expect(await failure(store.read("file_a", "0-x", 0, 1))).toBeInstanceOf(BytesLost);
	expect((await store.read("file_ab", "0-x", 0, 9)).length).toBe(9);
	await store.removeFile("file_ab");
}
