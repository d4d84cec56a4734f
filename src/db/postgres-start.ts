import type { ChildProcess } from "node:child_process";
import fs from "node:fs";
import { basename, join } from "node:path";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { killOnExit, type PostgresBinaries, relativePath, spawnPostgres, waitForExit } from "./postgres-binaries.ts";
import { changeOwner, findPostmaster, type Postmaster, removeForeignPidFile, type ServerOwner } from "./postmaster.ts";

export interface PostgresHome {
	readonly dataDir: string;
	/** Folder of the cluster and its files, owned by the server's user. */
	readonly folder: string;
	readonly cluster: string;
	readonly owner: ServerOwner | undefined;
	readonly binaries: PostgresBinaries;
	readonly settings: Readonly<Record<string, string>>;
}

export const POSTGRES_USER = "tollgate";
export const START_DEADLINE_MS = 60_000;
const POLL_MS = 25;
/** Milliseconds before a server that ended at once is restarted: its port or shared memory may still be in use. */
const RESTART_WAIT_MS = 500;
const STARTS_MAX = 20;
const LOG_BYTES_MAX = 16 * 1024 * 1024;

/** Creates the cluster in a temporary folder and moves it, so a crash leaves no part. Fault service_unavailable. */
export async function initialiseCluster(home: PostgresHome, password: string): Promise<void> {
	for (const name of fs.readdirSync(home.folder)) {
		if (name.startsWith("initdb-")) fs.rmSync(join(home.folder, name), { recursive: true, force: true });
	}
	const unfinished = join(home.folder, `initdb-${process.pid}`);
	const passwordFile = `${unfinished}.password`;
	fs.mkdirSync(unfinished, { mode: 0o700 });
	fs.writeFileSync(passwordFile, `${password}\n`, { mode: 0o600, flag: "wx" });
	changeOwner(home.owner, unfinished);
	changeOwner(home.owner, passwordFile);
	const flags = [
		`--pgdata=${relativePath(unfinished)}`,
		`--username=${POSTGRES_USER}`,
		`--pwfile=../${basename(passwordFile)}`,
		"--auth=scram-sha-256",
		"--encoding=UTF8",
		"--no-locale",
		"--no-instructions",
		// If the server runs without fsync (in tests), its first files need no sync either.
		...(home.settings.fsync === "off" ? ["--no-sync"] : []),
	];
	try {
		const child = spawnPostgres({ ...home, folder: unfinished }, "initdb", flags, {
			stdio: ["ignore", "ignore", "pipe"],
		});
		const { code, output } = await killOnExit(
			() => child,
			() => waitForExit(child),
		);
		if (code !== 0) throw notStarted("The embedded PostgreSQL could not be initialised", output);
		fs.renameSync(unfinished, home.cluster);
	} finally {
		fs.rmSync(passwordFile, { force: true });
		fs.rmSync(unfinished, { recursive: true, force: true });
	}
}

/**
 * Returns when a server is ready: waits for one that is stopping, and restarts one that ends at once. The caller must
 * hold the start lock. With `port`, tries only that port. `isGivenUp` ends the wait while no server is being started.
 * Fault service_unavailable after the deadline.
 */
export async function startUnlessRunning(
	log: Log,
	home: PostgresHome,
	options: { port: number | undefined; isGivenUp?: () => boolean },
): Promise<Postmaster> {
	let newest: ChildProcess | undefined;
	const spawnAt = (port: number) => {
		const attempt = spawnServer(log, home, port);
		newest = attempt.child;
		return attempt;
	};
	return killOnExit(
		() => newest,
		() => untilReady(home, options, spawnAt),
	);
}

async function untilReady(
	home: PostgresHome,
	{ port, isGivenUp = () => false }: Parameters<typeof startUnlessRunning>[2],
	spawnAt: (port: number) => Attempt,
): Promise<Postmaster> {
	const giveUpAt = performance.now() + START_DEADLINE_MS;
	const logPath = join(home.dataDir, "postgres.log");
	const saidBefore = fs.existsSync(logPath) ? fs.statSync(logPath).size : 0;
	let attempt: Attempt | undefined;
	let starts = 0;
	let startAgainAt = 0;
	while (performance.now() < giveUpAt) {
		const postmaster = findPostmaster(home.cluster);
		if (postmaster?.ready) return postmaster;
		const isOnItsWay = postmaster === undefined && attempt?.over === false;
		if (!isOnItsWay && isGivenUp()) break;
		if (!isOnItsWay && postmaster === undefined && performance.now() >= startAgainAt) {
			if (starts === STARTS_MAX) break;
			removeForeignPidFile(home.cluster);
			attempt = spawnAt(port ?? freePort());
			starts += 1;
			startAgainAt = performance.now() + RESTART_WAIT_MS;
		}
		await Bun.sleep(POLL_MS);
	}
	const said = fs.existsSync(logPath) ? fs.readFileSync(logPath).subarray(saidBefore).toString() : "";
	throw notStarted(`The embedded PostgreSQL did not become ready, see ${logPath}`, said);
}

function notStarted(what: string, said: string): Fault {
	const { remedy, line } = parseStartProblem(said);
	const message = remedy === undefined ? `${what}.` : `${what}: ${remedy}.`;
	return new Fault("service_unavailable", message, line === "" ? {} : { private: line });
}

interface Attempt {
	readonly child: ChildProcess;
	/** True when the process has ended, or could not be started. */
	over: boolean;
}

function spawnServer(log: Log, home: PostgresHome, port: number): Attempt {
	const settings = {
		listen_addresses: "127.0.0.1",
		unix_socket_directories: "",
		max_connections: "200",
		// A server that recovers from an archive becomes ready only afterwards; before, it is read-only and incomplete.
		hot_standby: "off",
		// Clients get the errors of their statements; the log would keep the statements' values for ever.
		log_min_messages: "log",
		log_error_verbosity: "terse",
		...home.settings,
	};
	const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
	// PostgreSQL uses the last -D. The first one shows people and `findPostmaster` which server this is.
	const directory = ["-D", home.cluster, "-D", relativePath(home.cluster)];
	const logFd = openLog(join(home.dataDir, "postgres.log"));
	// Detached, so that Ctrl-C reaches only this process, which drains before it stops the database.
	const child = spawnPostgres(
		{ ...home, folder: home.cluster },
		"postgres",
		[...directory, "-p", String(port), ...flags],
		{ detached: true, stdio: ["ignore", logFd, logFd] },
	);
	fs.closeSync(logFd);
	const attempt: Attempt = { child, over: false };
	child.on("exit", () => (attempt.over = true));
	child.on("error", (error) => {
		attempt.over = true;
		log.error("the embedded PostgreSQL could not be started", { error });
	});
	child.unref();
	return attempt;
}

/** Opens the log file. If the file is large, renames it and starts a new one; keeps one old file. */
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

/** Remedies of known problems, by a pattern for the error's text. */
const PROBLEMS: readonly (readonly [RegExp, string])[] = [
	[
		/could not look up effective user ID/,
		"its user has no name on this machine: give it an entry in /etc/passwd, or set DATABASE_URL",
	],
	[/shared memory segment.*No space left/, "/dev/shm is too small (docker run --shm-size=64m), or set DATABASE_URL"],
	[
		/No space left on device|Check free disk space/,
		"make room on the disk of DATA_DIR, 100 MB at least, or set DATABASE_URL",
	],
	[/insufficient file descriptors/, "it may open too few files: raise the limit (ulimit -n)"],
	[
		/could not fork|Resource temporarily unavailable/,
		"there may be no more processes: raise the limit (ulimit -u, pids.max)",
	],
];

/** Why the server did not start, by its output: the first fatal line, and the remedy if the cause is known. */
export function parseStartProblem(said: string) {
	const lines = said.split("\n").filter((line) => line.trim() !== "");
	const fatal = lines.find((line) => /FATAL|PANIC|error:/.test(line));
	const known = PROBLEMS.find(([pattern]) => pattern.test(said));
	return { remedy: known?.[1], line: fatal ?? lines.at(-1) ?? "" };
}
