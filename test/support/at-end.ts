import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const END_MS_MAX = 60_000;
const ends: (() => unknown)[] = [];

/**
 * Run after the last test of the file, the last that was registered first: what it was made from is still there. What a
 * file left whose set-up failed ends with the next one.
 */
export function atEnd(end: () => unknown): void {
	ends.push(end);
	// Bun runs these in the order in which they were registered, so the first runs all, and those behind one that failed.
	afterAll(async () => {
		for (let one = ends.pop(); one !== undefined; one = ends.pop()) await one();
	}, END_MS_MAX);
}

/** Stops a server after the last test of the file. */
export function untilEnd<T extends { stop(): unknown }>(server: T): T {
	atEnd(() => server.stop());
	return server;
}

/** An empty folder that is there for all tests of the file. */
export function temporaryFolder(): string {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-"));
	atEnd(() => rmSync(folder, { recursive: true, force: true }));
	return folder;
}
