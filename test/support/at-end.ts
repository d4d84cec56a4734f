import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const END_MS_MAX = 60_000;
let ends: (() => unknown)[] | undefined;

/** Run after the last test of the file, the last that was registered first: what it was made from is still there. */
export function atEnd(end: () => unknown): void {
	if (ends === undefined) {
		const registered: (() => unknown)[] = [];
		ends = registered;
		// Bun runs these in the order in which they were registered, so there is one for all.
		afterAll(async () => {
			ends = undefined;
			for (const one of registered.reverse()) await one();
		}, END_MS_MAX);
	}
	ends.push(end);
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
