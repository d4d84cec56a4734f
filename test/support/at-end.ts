import { afterAll, setDefaultTimeout } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A test beside others on a busy machine; only one that hangs takes so long. */
export const TEST_MS_MAX = 60_000;
const END_MS_MAX = 60_000;
/** The runtime names no hook that is cut off. */
const LATE_MS = 20_000;
/** What is to run at the end of the file that is under way, and of those before it that could not be loaded to their end. */
let ends: { file: string; registered: (() => unknown)[] } | undefined;

/** The file whose tests have a time of their own. */
let patient: string | undefined;

/** For a file whose tests need more than that: said before or after what it stops at its end. */
export function testsMayTake(ms: number): void {
	patient = Bun.main;
	setDefaultTimeout(ms);
}

/** Run after the last test of the file, the last that was registered first: what it was made from is still there. */
export function atEnd(end: () => unknown): void {
	// A file that throws while it is loaded never comes to its end; what it left is stopped with the next one.
	if (ends?.file !== Bun.main) {
		const registered = ends?.registered ?? [];
		ends = { file: Bun.main, registered };
		// Bun's own 5 s, which no file of settings changes, are too short for a test that has something to stop.
		if (patient !== Bun.main) setDefaultTimeout(TEST_MS_MAX);
		// Bun runs these in the order in which they were registered, so there is one for all.
		afterAll(async () => {
			ends = undefined;
			for (const one of registered.reverse()) {
				const late = setTimeout(() => console.error(`${Bun.main} has not ended: ${one}`), LATE_MS);
				await one();
				clearTimeout(late);
			}
		}, END_MS_MAX);
	}
	ends.registered.push(end);
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
