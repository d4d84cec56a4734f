import { afterAll, setDefaultTimeout } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Timeout of a test on a busy machine; only a hanging test takes this long. */
export const TEST_MS_MAX = 60_000;
const END_MS_MAX = 60_000;
/** Limit for a clean-up: Bun's error for a hook that times out does not name the hook. */
const LATE_MS = 20_000;
/** Clean-ups of the current file, and of earlier files that failed to load. */
let ends: { file: string; registered: (() => unknown)[] } | undefined;

/** The file that has set its own test timeout. */
let patient: string | undefined;

/** Sets the timeout of this file's tests, before or after registering its cleanups. */
export function testsMayTake(ms: number): void {
	patient = Bun.main;
	setDefaultTimeout(ms);
}

/** Runs clean-ups after the last test of the file in reverse order, so that what each one needs still exists. */
export function atEnd(end: () => unknown): void {
	// A file that throws while loading never reaches its end, so its clean-ups run with those of the next file.
	if (ends?.file !== Bun.main) {
		const registered = ends?.registered ?? [];
		ends = { file: Bun.main, registered };
		// Bun's default of 5 s, which no configuration file changes, is too short for tests that stop a service.
		if (patient !== Bun.main) setDefaultTimeout(TEST_MS_MAX);
		// Bun runs hooks in order of registration, so a single hook runs all cleanups.
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

/** An empty folder for all tests of the file. */
export function temporaryFolder(home = tmpdir()): string {
	const folder = mkdtempSync(join(home, "tollgate-"));
	atEnd(() => rmSync(folder, { recursive: true, force: true }));
	return folder;
}
