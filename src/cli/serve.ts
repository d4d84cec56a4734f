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
	/** Prints the texts of the first run. */
	readonly out: (text: string) => void;
	readonly err: (text: string) => void;
	/** True if `out` is a terminal with colours. */
	readonly colour: boolean;
	/** Shell command that calls this program. */
	readonly program: string;
}

/** A plane that runs, for its process. */
interface Served {
	/** URL of the plane; undefined for a console behind gateways. */
	readonly url: string | undefined;
	/** The demo's models, for the parent process. */
	readonly demo?: unknown;
	reload(): Promise<void>;
	/** Closes connections, so that clients reconnect to a successor or another machine. True if that takes time. */
	sendAway(to: { successor: boolean }): boolean;
	/** Informs a console about its gateways: while they drain it keeps serving, until they have ended. */
	hearOfGateways?(are: "leaving" | "gone"): void;
	stop(): Promise<void>;
}

export const RETIRE = "retire";
/** Message of the supervisor to its children when the log level changes. */
export const logLevelMessage = (level: LogLevel): string => `log ${level}`;
/** Messages of the supervisor to a console: the gateways are draining, or have ended. */
export const GATEWAYS_LEAVING = "gateways leaving";
export const GATEWAYS_GONE = "gateways gone";
/** Time for closing idle connections. Common clients close theirs after 4 s (Node) or 5 s (Python's httpx). */
const SEND_AWAY_MS = 6_000;
/** The same at a terminal, where a person waits; enough for connections in use. */
const SEND_AWAY_AT_TERMINAL_MS = 250;
/** Largest share of the drain for closing idle connections without a successor, so that DRAIN_S is kept. */
const SEND_AWAY_PART = 1 / 4;

/**
 * Runs one plane until SIGTERM or SIGINT; returns the exit code. The first signal sends clients away, then drains; a
 * second one exits at once. SIGHUP reloads the catalogue; SIGUSR1 toggles log level `debug`.
 */
export async function serve(deps: ServeDeps, config: Config): Promise<number> {
	const { log } = deps;
	const end = Promise.withResolvers<number>();
	const leaving = new AbortController();
	let stopping = false;
	let exitCode = 0;
	let served: Served | undefined;

	function stop(code: number): void {
		// A bug during start or stop sets the exit code too.
		exitCode ||= code;
		if (stopping) return;
		stopping = true;
		// A start that is running checks `stopping` at its end, so nothing must be stopped here.
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

	process.on("SIGUSR1", () => noteLevel(deps, deps.logSwitch.toggleDebug()));
	// Listens early: SIGHUP would end a process that is starting. It then reads the newest catalogue anyway.
	process.on("SIGHUP", () => {
		served?.reload().catch((error) => log.error("reloading the catalogue failed", { error }));
	});

	try {
		for (const warning of config.warnings) log.warn(warning);
		// A child's HOST was checked by its parent.
		if (config.runDir === null) await unlessAborted(leaving.signal, checkHost(config.host));
		const plane = await startPlane(deps, config, leaving.signal);
		served = plane;
		if (plane.url === undefined) log.info("the console is ready");
		else log.info("listening", { url: plane.url });
		// Reports to the supervisor, if this is a child, which ends with it.
		process.send?.({ ready: true, demo: plane.demo } satisfies ReadyMessage);
		process.on("disconnect", () => {
			// Without a supervisor no message about gateways will follow.
			plane.hearOfGateways?.("gone");
			stop(0);
		});
		process.on("message", (message) => {
			const level = LOG_LEVELS.find((one) => message === logLevelMessage(one));
			if (level !== undefined) {
				deps.logSwitch.set(level);
				noteLevel(deps, level);
			}
			if (message === GATEWAYS_LEAVING) plane.hearOfGateways?.("leaving");
			if (message === GATEWAYS_GONE) plane.hearOfGateways?.("gone");
			if (message !== RETIRE) return;
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

export function noteLevel({ log }: ServeDeps, leastLevel: LogLevel): void {
	log.warn("log level changed", { leastLevel });
}

/** Loads only the code of this process's plane. */
async function startPlane({ log }: ServeDeps, config: Config, leaving: AbortSignal): Promise<Served> {
	if (config.role === "console") {
		const { serveConsole } = await import("../planes/serve-console.ts");
		return serveConsole(config, { log, leaving });
	}
	const { serveGateway } = await import("../planes/serve-gateway.ts");
	return serveGateway(config, { log, leaving });
}
