/** Where the processes of one `serve` find each other: Unix sockets in a folder that only their user may enter. */
import fs from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { Server } from "bun";
import { isAlive } from "../base/process-alive.ts";

/** The kernel takes 107 bytes for the address of a socket; the names that are added to the place take up to 47. */
const PLACE_BYTES_MAX = 60;

/** Where a gateway asks the other processes for their figures. A client cannot: the door passes no header like this on. */
export const METRICS_PATH = "/process-metrics";
export const METRICS_HEADER = "x-tollgate-process-metrics";

export const consoleSocket = (runDir: string): string => join(runDir, "console.sock");
export const gatewaySocket = (runDir: string, slot: number): string => join(runDir, `gateway-${slot}.sock`);

/** All gateways' sockets, dead ones too. */
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

/** Makes the folder: under DATA_DIR if that path is short enough for a socket, else where temporary files go. */
export function makeRunDir(dataDir: string): string {
	const own = placeIn(dataDir);
	const places = [own, tmpdir(), "/tmp"].filter((path) => Buffer.byteLength(path) <= PLACE_BYTES_MAX);
	let problem: unknown;
	for (const place of places) {
		try {
			fs.mkdirSync(place, { recursive: true });
			// Elsewhere a folder may be another machine's, or another container's.
			if (place === own) removeAbandoned(place);
			const runDir = fs.mkdtempSync(join(place, `tollgate-${process.pid}-`));
			if (place !== own) noteElsewhere(own, runDir);
			return runDir;
		} catch (error) {
			problem = error;
		}
	}
	throw problem;
}

/** Says to later starts on this DATA_DIR which of the folders that lie elsewhere are its own, and takes those away that were left. */
function noteElsewhere(own: string, runDir: string): void {
	try {
		fs.mkdirSync(own, { recursive: true });
		removeAbandoned(own);
		fs.symlinkSync(runDir, join(own, basename(runDir)));
	} catch {
		// Where nothing can be written none is missed by who starts now, and a cleaner of temporary files takes it.
	}
}

export function removeRunDir(dataDir: string, runDir: string): void {
	for (const path of [runDir, join(placeIn(dataDir), basename(runDir))])
		fs.rmSync(path, { recursive: true, force: true });
}

function placeIn(dataDir: string): string {
	return join(dataDir, "run");
}

/**
 * Serves at `path`, whoever was there before: a dead process leaves its socket behind, and a successor takes over from
 * one that still answers. The socket gets another name, which is then exchanged for this one in a single step.
 */
export function serveAt(
	path: string,
	options: {
		fetch: (request: Request) => Response | Promise<Response>;
		error: (error: Error) => Response;
		maxRequestBodySize: number;
	},
): Server<undefined> {
	const own = `${path}.${process.pid}`;
	keepFolder(dirname(path));
	fs.rmSync(own, { force: true });
	// The other end is a process of ours, which watches its own clients. A socket's timeout cannot be changed later.
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

/**
 * Cleaners of temporary files take what has been lying for days, and whoever starts behind that would find no place to
 * listen at. Where everybody may write somebody else could have made a folder of this name meanwhile, with his own door in it.
 */
function keepFolder(folder: string): void {
	fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
	const { uid } = fs.lstatSync(folder);
	if (uid !== process.geteuid?.()) throw new Error(`${folder} is another user's: start the service again`);
}

/** Folders of processes that were killed. */
function removeAbandoned(place: string): void {
	for (const name of fs.readdirSync(place)) {
		const pid = Number(/^tollgate-(\d+)-\w{6}$/.exec(name)?.[1] ?? Number.NaN);
		if (Number.isNaN(pid) || (pid !== process.pid && isAlive(pid))) continue;
		const path = join(place, name);
		const elsewhere = linkedFrom(path);
		// Its name is one that the system made up for it, and says whose it is.
		if (elsewhere !== undefined && basename(elsewhere) === name) fs.rmSync(elsewhere, { recursive: true, force: true });
		fs.rmSync(path, { recursive: true, force: true });
	}
}

function linkedFrom(path: string): string | undefined {
	return fs.lstatSync(path).isSymbolicLink() ? fs.readlinkSync(path) : undefined;
}
