import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { findPostmaster } from "../../src/db/postmaster.ts";
import { atEnd } from "../support/at-end.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { childrenOf, isRunning } from "../support/processes.ts";
import { quietPort } from "./serve-process.ts";

/** A PostgreSQL server that tests can stop, kill, pause and restart on the same port. */
export type OwnPostgres = Awaited<ReturnType<typeof startOwnPostgres>>;

const START_ATTEMPTS_MAX = 40;
/** Keeps shared memory in files of the data folder, because a killed server would leak system memory. */
const IN_FILES = { dynamic_shared_memory_type: "mmap" };

/** Starts a server for all tests of a file, which is removed after the last one. */
export async function withOwnPostgres(settings: Readonly<Record<string, string>> = {}) {
	const postgres = await startOwnPostgres(settings);
	atEnd(() => postgres.destroy());
	return postgres;
}

/** Starts a server that is durable as in production. `settings`: additional `-c name=value`. */
export async function startOwnPostgres(settings: Readonly<Record<string, string>> = {}) {
	const dataDir = mkdtempSync(join(quickFolder(), "tollgate-chaos-postgres-"));
	// The server may run as another user, who needs access to the folder.
	mkdirSync(dataDir, { recursive: true, mode: 0o755 });
	Bun.spawnSync(["chmod", "755", dataDir]);
	await placeCluster(dataDir);
	const port = quietPort();
	const begin = () =>
		startEmbeddedPostgres(
			{ log: silentLog },
			{ dataDir, settings: { ...IN_FILES, ...settings, port: String(port) }, watched: false },
		);
	let server: EmbeddedPostgres | undefined = await begin();
	const { url } = server;
	let paused = false;
	let isDestroyed = false;

	const cluster = join(dataDir, "postgres", "cluster");
	const pids = (): number[] => {
		const postmaster = findPostmaster(cluster)?.pid;
		return postmaster === undefined ? [] : [postmaster, ...childrenOf(postmaster)];
	};
	const signal = (name: NodeJS.Signals) => {
		for (const pid of pids()) {
			try {
				process.kill(pid, name);
			} catch {
				// Ignored: the process has already ended.
			}
		}
	};

	const postgres = {
		url,
		port,
		/** The server's data folder, for backups and restores. */
		cluster,
		logPath: join(dataDir, "postgres.log"),
		async stop() {
			await server?.stop();
			server = undefined;
		},
		async crash() {
			const killed = pids();
			signal("SIGKILL");
			server = undefined;
			while (killed.some(isRunning)) await Bun.sleep(5);
		},
		/** Stops all processes of the server with SIGSTOP: connections stay open but are not answered. */
		pause() {
			paused = true;
			// Stops the postmaster first, so that it cannot start other processes.
			signal("SIGSTOP");
		},
		resume() {
			paused = false;
			signal("SIGCONT");
		},
		async start() {
			for (let attempt = 1; server === undefined; attempt++) {
				try {
					server = await begin();
				} catch (error) {
					// A standby's start is pending until it is promoted, and would otherwise start the destroyed server again.
					if (isDestroyed || attempt === START_ATTEMPTS_MAX) throw error;
					await Bun.sleep(100);
				}
			}
		},
		isUp: () => server !== undefined && !paused,
		/** Ends the server, whatever its state, and deletes its files. */
		async destroy() {
			isDestroyed = true;
			if (paused) postgres.resume();
			await postgres.crash();
			rmSync(dataDir, { recursive: true, force: true });
		},
	};
	return postgres;
}
