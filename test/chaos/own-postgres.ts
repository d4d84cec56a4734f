import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/db/embedded.ts";
import { atEnd } from "../support/at-end.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { quietPort } from "./serve-process.ts";

/** A PostgreSQL server that can be stopped, killed, paused and restarted on the same port. */
export interface OwnPostgres {
	readonly url: string;
	readonly port: number;
	/** Its data folder, for backup and restore. */
	readonly cluster: string;
	readonly logPath: string;
	stop(): Promise<void>;
	crash(): Promise<void>;
	/** SIGSTOP to all its processes: connections stay open without answers. */
	pause(): void;
	resume(): void;
	start(): Promise<void>;
	isUp(): boolean;
	/** Ends it in any state and removes its files. */
	destroy(): Promise<void>;
}

const START_ATTEMPTS_MAX = 40;
/** Shared memory of a killed server is a file in its folder; in system memory it would leak. */
const IN_FILES = { dynamic_shared_memory_type: "mmap" };

/** For all tests of a file: awaited at the top, removed after the last test. */
export async function withOwnPostgres(settings: Readonly<Record<string, string>> = {}): Promise<OwnPostgres> {
	const postgres = await startOwnPostgres(settings);
	atEnd(() => postgres.destroy());
	return postgres;
}

/** `settings` are further `-c name=value`; by default durable as in production. */
export async function startOwnPostgres(settings: Readonly<Record<string, string>> = {}): Promise<OwnPostgres> {
	const dataDir = mkdtempSync(join(quickFolder(), "tollgate-chaos-postgres-"));
	// The server may run as another user, who needs access.
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

	const pids = (): number[] => {
		const postmaster = postmasterPid(dataDir);
		return postmaster === undefined ? [] : [postmaster, ...childrenOf(postmaster)];
	};
	const signal = (name: NodeJS.Signals) => {
		for (const pid of pids()) {
			try {
				process.kill(pid, name);
			} catch {
				// It has ended already.
			}
		}
	};

	const postgres: OwnPostgres = {
		url,
		port,
		cluster: join(dataDir, "postgres", "cluster"),
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
		pause() {
			paused = true;
			// The postmaster first, so that it starts no new process.
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
		async destroy() {
			if (paused) postgres.resume();
			await postgres.crash();
			rmSync(dataDir, { recursive: true, force: true });
		},
	};
	return postgres;
}

function postmasterPid(dataDir: string): number | undefined {
	try {
		return Number(readFileSync(join(dataDir, "postgres", "cluster", "postmaster.pid"), "utf8").split("\n")[0]);
	} catch {
		return undefined;
	}
}

function childrenOf(parent: number): number[] {
	return readdirSync("/proc")
		.filter((name) => /^\d+$/.test(name))
		.map(Number)
		.filter((pid) => statOf(pid)?.parent === parent);
}

function isRunning(pid: number): boolean {
	const state = statOf(pid)?.state;
	return state !== undefined && state !== "Z";
}

function statOf(pid: number): { state: string; parent: number } | undefined {
	try {
		const [state = "", parent] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop()?.split(" ") ?? [];
		return { state, parent: Number(parent) };
	} catch {
		return undefined;
	}
}
