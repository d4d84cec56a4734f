/** Where the processes of one `serve` find each other: Unix sockets in a folder that only their user may enter. */
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Server } from "bun";
import { isAlive } from "../base/process-alive.ts";

/** A Unix socket's path has at most 107 bytes; the names below this folder take up to 47. */
const PLACE_BYTES_MAX = 60;

/** The path for metrics between processes. Clients cannot use it: the proxy drops such headers. */
export const METRICS_PATH = "/process-metrics";
export const METRICS_HEADER = "x-tollgate-process-metrics";

export const consoleSocket = (runDir: string): string => join(runDir, "console.sock");
export const gatewaySocket = (runDir: string, slot: number): string => join(runDir, `gateway-${slot}.sock`);

/** All gateways' sockets, including dead ones. */
export function gatewaySockets(runDir: string): string[] {
	try {
		return fs
			.readdirSync(runDir)
			.filter((name) => /^gateway-\d+\.sock$/.test(name))
			.map((name) => join(runDir, name));
	} catch {
		return [];
	}
}

/** Creates the folder: under DATA_DIR if that path is short enough for a socket, else in the temporary directory. */
export function makeRunDir(dataDir: string): string {
	const own = join(dataDir, "run");
	const places = [own, tmpdir(), "/tmp"].filter((path) => Buffer.byteLength(path) <= PLACE_BYTES_MAX);
	let problem: unknown;
	for (const place of places) {
		try {
			fs.mkdirSync(place, { recursive: true });
			// In the temporary directory a folder may belong to another machine or container.
			if (place === own) removeAbandoned(place);
			return fs.mkdtempSync(join(place, `tollgate-${process.pid}-`));
		} catch (error) {
			problem = error;
		}
	}
	throw problem;
}

export function removeRunDir(runDir: string): void {
	fs.rmSync(runDir, { recursive: true, force: true });
}

/** Serves at `path`, replacing a dead process's socket or taking over from a live one by an atomic rename. */
export function serveAt(
	path: string,
	options: {
		fetch: (request: Request) => Response | Promise<Response>;
		error: (error: Error) => Response;
		maxRequestBodySize: number;
	},
): Server<undefined> {
	const own = `${path}.${process.pid}`;
	fs.rmSync(own, { force: true });
	// The client is our own process, which watches its own clients. A Unix socket's timeout cannot be changed later.
	const unwatched = {
		...options,
		unix: own,
		idleTimeout: 0,
		development: false,
	} as unknown as Bun.Serve.Options<undefined>;
	const server = Bun.serve(unwatched) as Server<undefined>;
	fs.renameSync(own, path);
	return server;
}

/** Removes folders of killed processes. */
function removeAbandoned(place: string): void {
	for (const name of fs.readdirSync(place)) {
		const pid = Number(/^tollgate-(\d+)-\w{6}$/.exec(name)?.[1] ?? Number.NaN);
		if (!Number.isNaN(pid) && (pid === process.pid || !isAlive(pid))) removeRunDir(join(place, name));
	}
}
