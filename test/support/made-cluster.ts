import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { waitForFileLock } from "../../src/base/file-lock.ts";
import { silentLog } from "../../src/base/log.ts";
import { startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { findPostgresBinaries } from "../../src/db/postgres-binaries.ts";
import { quickFolder } from "./memory-folder.ts";

const PREFIX = "made-cluster-";
const LOCK_MS_MAX = 60_000;

/**
 * Puts an empty cluster of the embedded PostgreSQL into a data folder, as the first start of a service would. It is a
 * copy of a cluster that later runs reuse: a copy takes less than a tenth of the second of processor time that an
 * initialisation takes. Not for tests of the first start.
 */
export async function placeCluster(dataDir: string): Promise<void> {
	const made = await madeCluster();
	const copied = Bun.spawnSync(["cp", "-a", join(made, "postgres"), join(made, "postgres.password"), dataDir]);
	if (!copied.success) throw new Error(`the cluster could not be copied to ${dataDir}: ${copied.stderr}`);
}

async function madeCluster(): Promise<string> {
	const home = quickFolder();
	const name = `${PREFIX}${(await findPostgresBinaries()).version}`;
	const folder = join(home, name);
	if (existsSync(folder)) return folder;
	const lock = await waitForFileLock(join(home, "made-cluster.lock"), LOCK_MS_MAX);
	if (lock === undefined) throw new Error(`nobody released ${home}/made-cluster.lock`);
	try {
		if (existsSync(folder)) return folder;
		// Removes unfinished copies of killed runs, and clusters of other versions.
		for (const other of readdirSync(home)) if (other.startsWith(PREFIX)) rmSync(join(home, other), { recursive: true });
		const unfinished = `${folder}.unfinished`;
		// The server may run as a different user, who must be able to read the folder.
		mkdirSync(unfinished, { mode: 0o755 });
		const server = await startEmbeddedPostgres(
			{ log: silentLog },
			{ dataDir: unfinished, settings: { fsync: "off" }, watched: false },
		);
		if (!(await server.stop())) throw new Error("the server that made the cluster did not stop");
		renameSync(unfinished, folder);
		return folder;
	} finally {
		lock.release();
	}
}
