import type { Environment } from "../base/environment-reader.ts";
import type { Log } from "../base/log.ts";
import { unlessAborted } from "../base/unless-aborted.ts";
import type { Config } from "../config.ts";
import type { DemoDescription } from "../demo/demo-models.ts";
import { checkHost, claimPort, reachableUrl } from "../planes/listening-address.ts";
import { checkConfiguredFile } from "../planes/open-catalog.ts";
import { openDatabase, releaseOrThrow } from "../planes/open-database.ts";
import { consoleSocket, makeRunDir, removeRunDir } from "../planes/run-dir.ts";
import { loadOrCreateSecrets, newInternalSecret } from "../secrets.ts";
import { type ChildSettings, consoleEnvironment, gatewayEnvironment } from "./child-environment.ts";
import { type EndSignal, onEndSignal } from "./end-signals.ts";
import { explainError } from "./explain.ts";
import {
	GATEWAYS_DRAINING,
	GATEWAYS_ENDED,
	logLevelChange,
	logLevelMessage,
	RETIRE_MESSAGE,
	type ServeDeps,
} from "./serve.ts";
import { startWorkerSlot, type WorkerSlot, type WorkerSlotOptions } from "./worker-slot.ts";

/** Longest time that the banner of the first run waits for the console. */
const CONSOLE_WAIT_MS = 10_000;
/** Time for the last settlements after the end of DRAIN_S. */
const STOP_MARGIN_MS = 10_000;

/**
 * Runs the service until SIGTERM or SIGINT; returns the exit code. Starts `config.workers` gateways, which share the
 * port, and a console to which they proxy. A process that dies is started again; a console that hangs is killed. If a
 * gateway dies before any gateway was ready, the exit code is 1. SIGHUP goes to the gateways. SIGUSR2 replaces all
 * processes, one after the other. SIGUSR1 toggles log level `debug` in all processes.
 */
export async function supervise(
	deps: ServeDeps,
	config: Config,
	command: { readonly argv: readonly string[]; readonly env: Environment },
): Promise<number> {
	const { log } = deps;
	for (const warning of config.warnings) log.warn(warning);
	// A signal during the preparation aborts it, and stops a database that the preparation started.
	const leaving = new AbortController();
	let endNow = (_: EndSignal) => leaving.abort();
	const slots: WorkerSlot[] = [];
	let removeSockets = () => {};
	const endAll = () => {
		// Kills the children: without their parent they would first finish their running requests.
		for (const one of slots) one.kill();
		removeSockets();
	};
	onEndSignal((signal) => endNow(signal), { atOnce: endAll });
	// Ignores these signals until there are children. Without listeners they would end the process.
	for (const signal of ["SIGHUP", "SIGUSR1", "SIGUSR2"] as const) process.on(signal, () => undefined);
	let found: Prepared;
	try {
		found = await prepare(deps, config, leaving.signal);
	} catch (error) {
		if (leaving.signal.aborted && error === leaving.signal.reason) return 0;
		deps.err(`error: ${explainError(error).message}\n`);
		return 1;
	}
	const { facts } = found;
	removeSockets = found.removeSockets;
	const end = Promise.withResolvers<number>();
	let everReady = false;
	let stopping = false;

	function slot(name: string, env: Record<string, string>, more: { givesUp: () => boolean; ask?: Ask }): WorkerSlot {
		const { givesUp, ...rest } = more;
		const options = {
			name,
			argv: command.argv,
			env,
			retire: RETIRE_MESSAGE,
			stopMsMax: config.drainMs + STOP_MARGIN_MS,
		};
		return startWorkerSlot({ log, givesUp }, { ...options, ...rest });
	}

	/** True if a gateway died before any gateway was ready: then all of them would fail in the same way. */
	function failsAtStart(): boolean {
		if (everReady) return false;
		stop(1, "SIGINT");
		return true;
	}

	const people = slot("console", consoleEnvironment(command.env, facts), {
		givesUp: () => false,
		ask: (signal) => askLife(consoleSocket(facts.runDir), signal),
	});
	const gateways = Array.from({ length: config.demo ? 1 : config.workers }, (_, at) =>
		slot(`gateway-${at + 1}`, gatewayEnvironment(command.env, facts, at + 1), { givesUp: failsAtStart }),
	);
	slots.push(...gateways, people);

	function stop(exitCode: number, signal: EndSignal): void {
		if (stopping) return;
		stopping = true;
		people.tell(GATEWAYS_DRAINING);
		const left = gateways.map((one) => one.stop(signal));
		void Promise.all(left).then(() => people.tell(GATEWAYS_ENDED));
		Promise.all([...left, people.stop(signal)]).then(
			(inOrder) => end.resolve(inOrder.every(Boolean) ? exitCode : 1),
			end.reject,
		);
	}

	const roll = createRoll(log, slots, () => stopping);
	endNow = (signal) => stop(0, signal);
	process.on("SIGHUP", () => {
		for (const gateway of gateways) gateway.signal("SIGHUP");
	});
	process.on("SIGUSR2", () => void roll());
	process.on("SIGUSR1", () => {
		const level = deps.logSwitch.toggleDebug();
		logLevelChange(deps, level);
		for (const one of slots) one.tell(logLevelMessage(level));
	});
	for (const gateway of gateways) {
		gateway.ready.then(
			() => (everReady = true),
			() => {},
		);
	}
	Promise.all(slots.map((one) => one.ready)).then(
		() => log.info("all processes are ready", { workers: gateways.length, port: facts.port }),
		() => {},
	);
	if (config.demo) {
		const welcome = gateways[0]?.ready.then(async ({ demo }) => {
			// The console is ready shortly after the gateways; the banner's links need it.
			await Promise.race([people.ready.catch(() => {}), Bun.sleep(CONSOLE_WAIT_MS)]);
			await greet(deps, config, found, demo);
		});
		void welcome?.catch(() => {});
	}

	const exitCode = await end.promise;
	return (await found.release()) ? exitCode : 1;
}

type Ask = NonNullable<WorkerSlotOptions["ask"]>;

/** Checks that the console responds. Any response counts, even an error because the database is unreachable. */
async function askLife(socket: string, signal: AbortSignal): Promise<void> {
	const options = { unix: socket, keepalive: false, proxy: false, signal } as BunFetchRequestInit;
	await (await fetch("http://console/livez", options)).text();
}

interface Prepared {
	readonly facts: ChildSettings;
	/** True if this start generated the pepper of key digests. */
	readonly newPepper: boolean;
	/** Releases shared resources. Returns false if the embedded database is still running afterwards. */
	release(): Promise<boolean>;
	removeSockets(): void;
}

/** Prepares what the children share. Rejects when `leaving` aborts, after it has stopped everything it started. */
async function prepare({ log }: ServeDeps, config: Config, leaving: AbortSignal): Promise<Prepared> {
	await unlessAborted(leaving, checkHost(config.host));
	const port = claimPort(config.host, config.port);
	await checkConfiguredFile(config);
	const secrets = loadOrCreateSecrets(config);
	const { url: databaseUrl, release } = await openDatabase({ log, leaving }, config);
	try {
		const runDir = makeRunDir(config.dataDir);
		const internalSecret = newInternalSecret();
		const removeSockets = () => removeRunDir(runDir);
		return {
			facts: { config, secrets, databaseUrl, internalSecret, runDir, port },
			newPepper: secrets.made.includes("KEY_PEPPER"),
			async release() {
				removeSockets();
				return release();
			},
			removeSockets,
		};
	} catch (error) {
		await releaseOrThrow(release);
		throw error;
	}
}

/** Prints the banner of the first run as soon as a gateway serves. */
async function greet(deps: ServeDeps, config: Config, { facts, newPepper }: Prepared, demo: unknown): Promise<void> {
	try {
		// Imported here, because only the first run needs this code.
		const { shellCommand, printDemoBanner } = await import("../demo/demo.ts");
		await printDemoBanner(
			{ log: deps.log, out: deps.out, colour: deps.colour, databaseUrl: facts.databaseUrl },
			{
				url: reachableUrl(config.host, facts.port),
				keyPepper: facts.secrets.keyPepper,
				newPepper,
				serviceName: config.serviceName,
				command: shellCommand(config, deps.program),
				publicUrl: config.publicUrl,
			},
			demo as DemoDescription,
		);
	} catch (error) {
		deps.err(`error: ${explainError(error).message}\n`);
	}
}

/** Returns a function that replaces all processes, one after the other. Further calls during that have no effect. */
function createRoll(log: Log, slots: readonly WorkerSlot[], isStopping: () => boolean): () => Promise<void> {
	let rolling = false;
	return async () => {
		if (rolling || isStopping()) return;
		rolling = true;
		try {
			for (const one of slots) if (!isStopping()) await one.replace();
			if (!isStopping()) log.info("all processes were replaced");
		} catch (error) {
			// A stop ends successors that are not ready, so their failure is expected then.
			if (!isStopping()) log.error("the rolling restart was aborted", { error });
		} finally {
			rolling = false;
		}
	};
}
