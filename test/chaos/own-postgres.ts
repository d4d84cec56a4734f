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

/** A PostgreSQL server that can be stopped, killed, paused and restarted on the same port. */
export type OwnPostgres = Awaited<ReturnType<typeof startOwnPostgres>>;

const START_ATTEMPTS_MAX = 40;
/** Keeps shared memory in files of the data folder: system memory of a killed server would leak. */
const IN_FILES = { dynamic_shared_memory_type: "mmap" };

/** A server for all tests of a file, removed after the last one. */
export async function withOwnPostgres(settings: Readonly<Record<string, string>> = {}) {
	const postgres = await startOwnPostgres(settings);
	atEnd(() => postgres.destroy());
	return postgres;
}

/** `settings` are further `-c name=value`; by default durable as in production. */
export async function startOwnPostgres(settings: Readonly<Record<string, string>> = {}) {
	const dataDir = mkdtempSync(join(quickFolder(), "tollgate-chaos-postgres-"));
	// The server may run as another user, who must be able to use the folder.
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
				// The process has ended already.
			}
		}
	};

	const postgres = {
		url,
		port,
		/** The data folder, for backups and restores. */
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
		/** Sends SIGSTOP to all processes of the server: connections stay open without answers. */
		pause() {
			paused = true;
			// Stops the postmaster first, so that it starts no further process.
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
					if (attempt === START_ATTEMPTS_MAX) throw error;
					await Bun.sleep(100);
				}
			}
		},
		isUp: () => server !== undefined && !paused,
		/** Ends the server in any state and removes its files. */
		async destroy() {
			if (paused) postgres.resume();
			await postgres.crash();
			rmSync(dataDir, { recursive: true, force: true });
		},
	};
	return postgres;
}
