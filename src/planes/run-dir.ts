/** Folder with the Unix sockets by which the processes of one `serve` connect. Only their user may enter it. */
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Server } from "bun";
import { isProcessAlive } from "../base/process-alive.ts";

/** Longest path of this folder. A socket's path has at most 107 bytes, of which the names in it take up to 47. */
const PLACE_BYTES_MAX = 60;

/** Path for metrics between processes. Clients cannot use it: the proxy drops the header that it needs. */
export const METRICS_PATH = "/process-metrics";
export const METRICS_HEADER = "x-tollgate-process-metrics";

export const consoleSocket = (runDir: string): string => join(runDir, "console.sock");
export const gatewaySocket = (runDir: string, slot: number): string => join(runDir, `gateway-${slot}.sock`);

/** Sockets of all gateways, even of dead ones. */
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

/** Creates the folder: in DATA_DIR if the path is short enough, else in the temporary directory. */
export function makeRunDir(dataDir: string): string {
	const own = join(dataDir, "run");
	const places = [own, tmpdir(), "/tmp"].filter((path) => Buffer.byteLength(path) <= PLACE_BYTES_MAX);
	let problem: unknown;
	for (const place of places) {
		try {
			fs.mkdirSync(place, { recursive: true });
			// Only in DATA_DIR: in the temporary directory a folder may belong to another container.
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

/** Serves at `path`. Replaces the socket of a dead process, or takes over from a live one by an atomic rename. */
export function listenAtSocket(
	path: string,
	options: {
		fetch: (request: Request) => Response | Promise<Response>;
		error: (error: Error) => Response;
		maxRequestBodySize: number;
	},
): Server<undefined> {
	const own = `${path}.${process.pid}`;
	fs.rmSync(own, { force: true });
	// No timeouts: the client is a process of this service and has its own, and Bun cannot change that of a Unix socket
	// later.
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

/** Removes folders that killed processes left. */
function removeAbandoned(place: string): void {
	for (const name of fs.readdirSync(place)) {
		const pid = Number(/^tollgate-(\d+)-\w{6}$/.exec(name)?.[1] ?? Number.NaN);
		if (!Number.isNaN(pid) && (pid === process.pid || !isProcessAlive(pid))) removeRunDir(join(place, name));
	}
}
