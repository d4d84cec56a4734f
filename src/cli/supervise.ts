import type { Subprocess } from "bun";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { startEmbeddedPostgres } from "../db/embedded.ts";
import { loadOrCreateSecrets } from "../secrets.ts";
import { onEndSignal } from "./end-signals.ts";
import { RETIRE } from "./serve.ts";

/** One of the processes that share the port. */
interface Worker {
	readonly slot: number;
	readonly process: Subprocess;
	/** Rejects if it ends before. */
	readonly ready: Promise<void>;
	readonly startedAtMs: number;
	/** To take over from one that still runs: if it ends before it is ready, that one stays. */
	readonly successor: boolean;
}

/** How to start this program again as `serve`. */
export interface WorkerCommand {
	readonly argv: readonly string[];
	readonly env: Readonly<Record<string, string | undefined>>;
}

const RESTART_MS_MIN = 100;
const RESTART_MS_MAX = 10_000;
/** A worker that lived this long may be started again at once. */
const STABLE_MS = 30_000;
/** Beyond the drain: for the last settlements. */
const STOP_MARGIN_MS = 10_000;

/**
 * Runs `config.workers` processes on one port, each an instance of its own with a journal of its own, until SIGTERM or
 * SIGINT; gives the exit code. A worker that dies is started again; if the first ones die before any was ready, the
 * exit code is 1, as without workers. SIGHUP goes to all of them; SIGUSR2 replaces them one by one, each new one ready
 * before its forerunner sends its clients away and drains.
 */
export async function supervise(
	deps: { log: Log; err: (text: string) => void },
	config: Config,
	command: WorkerCommand,
): Promise<number> {
	const { log } = deps;
	const secrets = loadOrCreateSecrets(config);
	const embedded =
		config.databaseUrl === null ? await startEmbeddedPostgres({ log }, { dataDir: config.dataDir }) : undefined;
	const port = config.port === 0 ? freePort(config.host) : config.port;
	const workers = new Map<number, Worker>();
	/** Running beside those: on their way out, or not in office yet. */
	const beside = new Set<Worker>();
	const failuresInRow = new Map<number, number>();
	const end = Promise.withResolvers<number>();
	let everReady = false;
	let exitCodeAtEnd = 0;
	let stopping = false;
	let rolling = false;

	function start(slot: number, successor = false): Worker {
		const ready = Promise.withResolvers<void>();
		ready.promise.catch(() => {});
		const process = Bun.spawn([...command.argv], {
			env: {
				...command.env,
				DATABASE_URL: config.databaseUrl ?? embedded?.url,
				INSTANCE_ID: `${secrets.instanceId}-w${slot}`,
				PORT: String(port),
				WORKER_INDEX: String(slot),
			},
			stdio: ["ignore", "inherit", "inherit"],
			ipc: (message) => {
				if (message !== "ready") return;
				everReady = true;
				ready.resolve();
			},
			onExit: (_, exitCode, signal) => {
				ready.reject(new Error(`worker ${slot} ended before it was ready`));
				ended(worker, exitCode, signal);
			},
		});
		const worker: Worker = { slot, process, ready: ready.promise, startedAtMs: performance.now(), successor };
		if (!successor) workers.set(slot, worker);
		else beside.add(worker);
		return worker;
	}

	function ended(worker: Worker, exitCode: number | null, signal: string | number | null): void {
		beside.delete(worker);
		const wasCurrent = workers.get(worker.slot) === worker;
		if (wasCurrent) workers.delete(worker.slot);
		settleEnd();
		if (stopping || !wasCurrent) return;
		if (!everReady) {
			log.error("a worker ended before any was ready", { worker: worker.slot, exitCode, signal });
			exitCodeAtEnd = 1;
			stop();
			return;
		}
		const lived = performance.now() - worker.startedAtMs;
		const failures = lived > STABLE_MS ? 0 : (failuresInRow.get(worker.slot) ?? 0) + 1;
		failuresInRow.set(worker.slot, failures);
		const waitMs = failures === 0 ? 0 : Math.min(RESTART_MS_MAX, RESTART_MS_MIN * 2 ** (failures - 1));
		log.error("a worker died; starting it again", { worker: worker.slot, exitCode, signal, waitMs });
		setTimeout(() => {
			if (!stopping && !workers.has(worker.slot)) start(worker.slot);
		}, waitMs);
	}

	function stop(): void {
		stopping = true;
		for (const worker of [...workers.values(), ...beside]) worker.process.kill("SIGTERM");
		setTimeout(() => {
			for (const worker of [...workers.values(), ...beside]) worker.process.kill("SIGKILL");
		}, config.drainMs + STOP_MARGIN_MS).unref();
		settleEnd();
	}

	function settleEnd(): void {
		if (stopping && workers.size === 0 && beside.size === 0) end.resolve(exitCodeAtEnd);
	}

	async function roll(): Promise<void> {
		if (rolling || stopping) return;
		rolling = true;
		try {
			for (let slot = 1; slot <= config.workers && !stopping; slot++) {
				const successor = start(slot, true);
				await successor.ready;
				const old = workers.get(slot);
				beside.delete(successor);
				workers.set(slot, successor);
				if (old === undefined) continue;
				beside.add(old);
				old.process.send(RETIRE);
				await old.process.exited;
			}
			log.info("all workers were replaced");
		} catch (error) {
			log.error("the replacement of the workers was given up", { error });
		} finally {
			rolling = false;
		}
	}

	onEndSignal(stop);
	process.on("SIGHUP", () => {
		for (const worker of workers.values()) worker.process.kill("SIGHUP");
	});
	process.on("SIGUSR2", () => void roll());

	const first = Array.from({ length: config.workers }, (_, slot) => start(slot + 1).ready);
	Promise.all(first).then(
		() => log.info("all workers are ready", { workers: config.workers, port }),
		() => {},
	);
	const exitCode = await end.promise;
	await embedded?.stop();
	return exitCode;
}

/** Takes a port that is free now; the workers share it from then on. */
function freePort(hostname: string): number {
	const probe = Bun.listen({ hostname, port: 0, socket: { data() {} } });
	const { port } = probe;
	probe.stop(true);
	return port;
}
