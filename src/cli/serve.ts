import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { onEndSignal } from "./end-signals.ts";
import { explain } from "./explain.ts";

export interface ServeDeps {
	readonly log: Log;
	/** Takes what the first run prints. */
	readonly out: (text: string) => void;
	readonly err: (text: string) => void;
	/** True if `out` is a terminal that takes colour. */
	readonly colour: boolean;
	/** How a shell calls this program. */
	readonly program: string;
}

/** What the supervisor says to a worker whose successor is ready. */
export const RETIRE = "retire";
/** Common clients give up a connection that was idle for this long (4 s in Node, 5 s in Python's httpx). */
const SEND_AWAY_MS = 6_000;
/** A turn of the event loop as short as this found no connection waiting. */
const QUIET_TURN_MS = 0.2;
const QUIET_TURN_WAIT_MS_MAX = 500;

/**
 * Runs the service until SIGTERM or SIGINT; gives the exit code. The first signal drains, a second one ends the
 * process at once. SIGHUP reads the catalogue's file again.
 */
export async function serve(deps: ServeDeps, config: Config): Promise<number> {
	const { log } = deps;
	const end = Promise.withResolvers<number>();
	let stopping = false;
	let stopApp: (() => Promise<void>) | undefined;

	function stop(exitCode: number): void {
		if (stopping) return;
		stopping = true;
		// Before the start is over there is nothing to stop yet: the start's own end looks at `stopping`.
		if (stopApp !== undefined) void finish(stopApp, exitCode);
	}

	async function finish(run: () => Promise<void>, exitCode: number): Promise<void> {
		try {
			await run();
			end.resolve(exitCode);
		} catch (error) {
			log.error("the service did not stop cleanly", { error });
			end.resolve(1);
		}
	}

	onEndSignal((signal) => {
		log.info("stopping", { signal });
		stop(0);
	});
	for (const event of ["unhandledRejection", "uncaughtException"] as const) {
		process.on(event, (error: unknown) => {
			log.error("a bug: the service stops", { event, error });
			stop(1);
		});
	}

	try {
		// Loaded here so that the other commands start without all of it.
		const { createApp } = await import("../app.ts");
		const app = await createApp(config, { log, onDiskFailed: () => process.exit(1) });
		stopApp = () => app.stop();
		if (config.demo) {
			const { commandFor, startDemo } = await import("../demo/demo.ts");
			const command = commandFor(config, deps.program);
			const demo = await startDemo(app, { log, out: deps.out, colour: deps.colour }, { command });
			stopApp = () => app.stop().finally(() => demo.stop());
		}
		process.on("SIGHUP", () => {
			app.reload().catch((error) => log.error("reloading the catalogue failed", { error }));
		});
		log.info("listening", { url: app.url });
		// A worker tells its supervisor, and does not outlive it.
		process.send?.("ready");
		process.on("disconnect", () => stop(0));
		process.on("message", (message) => {
			if (message !== RETIRE) return;
			log.info("sending clients to the other workers");
			app.sendAway();
			setTimeout(() => void quietTurn().then(() => stop(0)), SEND_AWAY_MS);
		});
	} catch (error) {
		deps.err(`error: ${explain(error).message}\n`);
		await stopApp?.().catch((failure) => log.error("the service did not stop cleanly", { error: failure }));
		return 1;
	}
	if (stopping) void finish(stopApp, 0);
	return end.promise;
}

/**
 * Resolves right after a turn of the event loop that had next to nothing to do, or after the longest wait. The kernel
 * resets the connections that wait at a listener when it closes: at that moment there are fewest of them.
 */
async function quietTurn(): Promise<void> {
	const deadline = performance.now() + QUIET_TURN_WAIT_MS_MAX;
	for (let began = performance.now(); began < deadline; ) {
		await new Promise((resolve) => setImmediate(resolve));
		const ended = performance.now();
		if (ended - began < QUIET_TURN_MS) return;
		began = ended;
	}
}
