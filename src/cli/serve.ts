import { LOG_LEVELS, type Log, type LogLevel, type LogSwitch } from "../base/log.ts";
import { unlessAborted } from "../base/unless-aborted.ts";
import type { Config } from "../config.ts";
import { checkHost } from "../planes/listening-address.ts";
import { onEndSignal } from "./end-signals.ts";
import { explainError } from "./explain.ts";
import type { ReadyMessage } from "./worker-process.ts";

export interface ServeDeps {
	readonly log: Log;
	readonly logSwitch: LogSwitch;
	/** Prints the banner of the first run. */
	readonly out: (text: string) => void;
	readonly err: (text: string) => void;
	/** True if `out` is a terminal that shows colours. */
	readonly colour: boolean;
	/** Shell command that calls this program, for texts. */
	readonly program: string;
}

/** A plane in operation, as the process controls it. */
interface Served {
	/** URL of the plane; undefined for a console that is reached through gateways. */
	readonly url: string | undefined;
	/** The demo's models, which the process sends to its parent. */
	readonly demo?: unknown;
	reload(): Promise<void>;
	/** Closes idle connections, so that clients reconnect to a successor or another machine. True if that takes time. */
	sendAway(to: { successor: boolean }): boolean;
	/** Informs a console about its gateways: it keeps serving while they drain, until all have ended. */
	hearOfGateways?(are: "leaving" | "gone"): void;
	stop(): Promise<void>;
}

export const RETIRE_MESSAGE = "retire";
/** Message of the supervisor to its children when the log level changes. */
export const logLevelMessage = (level: LogLevel): string => `log ${level}`;
/** Messages of the supervisor to the console: the gateways are draining; all gateways have ended. */
export const GATEWAYS_DRAINING = "gateways leaving";
export const GATEWAYS_ENDED = "gateways gone";
/** Time for closing idle connections. Common clients close theirs after 4 s (Node) or 5 s (Python's httpx). */
const SEND_AWAY_MS = 6_000;
/** Time for closing connections at a terminal, where a person waits: enough only for connections in use. */
const SEND_AWAY_AT_TERMINAL_MS = 250;
/** Without a successor, closing idle connections may take this fraction of DRAIN_S, which limits the whole stop. */
const SEND_AWAY_PART = 1 / 4;

/**
 * Runs one plane until SIGTERM or SIGINT; returns the exit code. The first signal closes idle connections, then drains;
 * a second one exits at once. SIGHUP reloads the catalogue; SIGUSR1 toggles log level `debug`.
 */
export async function serve(deps: ServeDeps, config: Config): Promise<number> {
	const { log } = deps;
	const end = Promise.withResolvers<number>();
	const leaving = new AbortController();
	let stopping = false;
	let exitCode = 0;
	let served: Served | undefined;

	function stop(code: number): void {
		// A bug during start or stop sets the exit code too, even if a stop has begun.
		exitCode ||= code;
		if (stopping) return;
		stopping = true;
		// Before the plane has started there is nothing to stop: the start ends itself when it sees `stopping`.
		if (served === undefined) leaving.abort();
		else void finish(served);
	}

	async function finish(plane: Served): Promise<void> {
		try {
			await plane.stop();
			end.resolve(exitCode);
		} catch (error) {
			log.error("the service did not stop cleanly", { error });
			end.resolve(1);
		}
	}

	function leave(plane: Served, { successor, ms }: { successor: boolean; ms: number }): void {
		if (plane.sendAway({ successor })) setTimeout(() => stop(0), ms);
		else stop(0);
	}

	onEndSignal(
		(signal) => {
			log.info("stopping", { signal });
			if (served === undefined) return stop(0);
			const msMax = signal === "SIGINT" ? SEND_AWAY_AT_TERMINAL_MS : SEND_AWAY_MS;
			leave(served, { successor: false, ms: Math.min(msMax, config.drainMs * SEND_AWAY_PART) });
		},
		{ isChild: config.runDir !== null },
	);
	for (const event of ["unhandledRejection", "uncaughtException"] as const) {
		process.on(event, (error: unknown) => {
			log.error("a bug: the service stops", { event, error });
			stop(1);
		});
	}

	process.on("SIGUSR1", () => logLevelChange(deps, deps.logSwitch.toggleDebug()));
	// Listens from the start, because SIGHUP without a listener ends the process. A start reads the newest catalogue.
	process.on("SIGHUP", () => {
		served?.reload().catch((error) => log.error("reloading the catalogue failed", { error }));
	});

	try {
		for (const warning of config.warnings) log.warn(warning);
		// The parent process has checked the HOST of its children.
		if (config.runDir === null) await unlessAborted(leaving.signal, checkHost(config.host));
		const plane = await startPlane(deps, config, leaving.signal);
		served = plane;
		if (plane.url === undefined) log.info("the console is ready");
		else log.info("listening", { url: plane.url });
		// Tells the supervisor that this child is ready. The child also ends when the supervisor does.
		process.send?.({ ready: true, demo: plane.demo } satisfies ReadyMessage);
		process.on("disconnect", () => {
			// Without a supervisor no message about the end of gateways will arrive.
			plane.hearOfGateways?.("gone");
			stop(0);
		});
		process.on("message", (message) => {
			const level = LOG_LEVELS.find((one) => message === logLevelMessage(one));
			if (level !== undefined) {
				deps.logSwitch.set(level);
				logLevelChange(deps, level);
			}
			if (message === GATEWAYS_DRAINING) plane.hearOfGateways?.("leaving");
			if (message === GATEWAYS_ENDED) plane.hearOfGateways?.("gone");
			if (message !== RETIRE_MESSAGE) return;
			log.info("handing over to the successor");
			leave(plane, { successor: true, ms: SEND_AWAY_MS });
		});
	} catch (error) {
		if (leaving.signal.aborted && error === leaving.signal.reason) return exitCode;
		deps.err(`error: ${explainError(error).message}\n`);
		return 1;
	}
	if (stopping) void finish(served);
	return end.promise;
}

export function logLevelChange({ log }: ServeDeps, leastLevel: LogLevel): void {
	log.warn("log level changed", { leastLevel });
}

/** Imports only the plane of this process, so that the other plane's code is not loaded. */
async function startPlane({ log }: ServeDeps, config: Config, leaving: AbortSignal): Promise<Served> {
	if (config.role === "console") {
		const { serveConsole } = await import("../planes/serve-console.ts");
		return serveConsole(config, { log, leaving });
	}
	const { serveGateway } = await import("../planes/serve-gateway.ts");
	return serveGateway(config, { log, leaving });
}
