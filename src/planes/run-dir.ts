/** Folder with the Unix sockets by which the processes of one `serve` connect. Only their user may enter it. */
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Server } from "bun";
import { isProcessAlive } from "../base/process-alive.ts";

/** Longest path of this folder: a socket's path has at most 107 bytes, and names in the folder take up to 47. */
const PLACE_BYTES_MAX = 60;

/** Path for metrics between processes. Clients cannot use it, because the proxy drops the header that it requires. */
export const METRICS_PATH = "/process-metrics";
export const METRICS_HEADER = "x-tollgate-process-metrics";

export const consoleSocket = (runDir: string): string => join(runDir, "console.sock");
export const gatewaySocket = (runDir: string, slot: number): string => join(runDir, `gateway-${slot}.sock`);

/** Sockets of all gateways, including those of dead processes. */
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

/** Creates the folder: in DATA_DIR if its path is short enough, otherwise in the temporary directory. */
export function makeRunDir(dataDir: string): string {
	const own = join(dataDir, "run");
	const places = [own, tmpdir(), "/tmp"].filter((path) => Buffer.byteLength(path) <= PLACE_BYTES_MAX);
	let problem: unknown;
	for (const place of places) {
		try {
			fs.mkdirSync(place, { recursive: true });
			// Only in DATA_DIR, because a folder in the temporary directory may belong to another container.
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
	// No timeouts: the client is a process of this service and has its own, and Bun cannot change them for a Unix socket.
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

/** Removes folders of processes that were killed. */
function removeAbandoned(place: string): void {
	for (const name of fs.readdirSync(place)) {
		const pid = Number(/^tollgate-(\d+)-\w{6}$/.exec(name)?.[1] ?? Number.NaN);
		if (!Number.isNaN(pid) && (pid === process.pid || !isProcessAlive(pid))) removeRunDir(join(place, name));
	}
}
