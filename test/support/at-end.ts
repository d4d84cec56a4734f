import { afterAll, setDefaultTimeout } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Timeout of a test on a busy machine, which only a hanging test reaches. */
export const TEST_MS_MAX = 60_000;
const END_MS_MAX = 60_000;
/** Time after which a slow clean-up is named: Bun's timeout error does not say which clean-up hangs. */
const LATE_MS = 20_000;
/** Clean-ups of the current file, and those of earlier files that failed to load. */
let ends: { file: string; registered: (() => unknown)[] } | undefined;

/** The file that has set its own test timeout with `testsMayTake`. */
let patient: string | undefined;

/** Sets the timeout of this file's tests. May be called before or after `atEnd`. */
export function testsMayTake(ms: number): void {
	patient = Bun.main;
	setDefaultTimeout(ms);
}

/** Runs `end` after the last test of the file. The order is reversed, because later parts use earlier ones. */
export function atEnd(end: () => unknown): void {
	// A file that throws while it loads has no `afterAll`, so its clean-ups run at the end of the next file.
	if (ends?.file !== Bun.main) {
		const registered = ends?.registered ?? [];
		ends = { file: Bun.main, registered };
		// Bun's default of 5 s is too short for tests that stop a service, and no configuration file can change it.
		if (patient !== Bun.main) setDefaultTimeout(TEST_MS_MAX);
		// One hook runs all clean-ups, because Bun runs hooks in order of registration, and the reverse is needed.
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

/** Stops a server after the last test of the file; returns the server. */
export function untilEnd<T extends { stop(): unknown }>(server: T): T {
	atEnd(() => server.stop());
	return server;
}

/** A server on a free local port; it and its connections end after the last test of the file. */
export function localServer(answer: (request: Request, server: Bun.Server<undefined>) => Response | Promise<Response>) {
	const server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, development: false, fetch: answer });
	atEnd(() => server.stop(true));
	return server;
}

/** A `localServer` that answers a path, or a method and path, with JSON or a status, all others with 404. */
export function jsonServer(answers: Readonly<Record<string, unknown>>, headers: Record<string, string> = {}) {
	return localServer(({ method, url }) => {
		const { pathname } = new URL(url);
		const answer = answers[pathname] ?? answers[`${method} ${pathname}`] ?? 404;
		if (typeof answer === "function") return answer();
		return typeof answer === "number" ? new Response("no", { status: answer }) : Response.json(answer, { headers });
	}).port as number;
}

/** Creates an empty folder for all tests of the file. */
export function temporaryFolder(home = tmpdir()): string {
	const folder = mkdtempSync(join(home, "tollgate-"));
	atEnd(() => rmSync(folder, { recursive: true, force: true }));
	return folder;
}
