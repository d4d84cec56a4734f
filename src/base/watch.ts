import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

export type Watch<T> = ReturnType<typeof startWatch<T>>;

const LOOK_MS = 60_000;

/**
 * Reads a value periodically (`everyMs`, by default a minute) for readiness and metrics. While reading fails, the last
 * value stays. `what` names the value in the log.
 */
export function startWatch<T>(
	deps: { look: () => Promise<T>; clock: Clock; log: Log },
	options: { what: string; firstLookMs: number; everyMs?: number },
) {
	const { clock, log } = deps;
	let last: T | undefined;
	let stopped = false;
	let cancel = clock.after(options.firstLookMs, look);

	function look(): void {
		deps
			.look()
			.then(
				(found) => (last = found),
				(error) => log.debug("a watched value could not be read", { what: options.what, error }),
			)
			.finally(() => {
				if (!stopped) cancel = clock.after(options.everyMs ?? LOOK_MS, look);
			});
	}

	return {
		/** The value that was read last; undefined before the first one. */
		last: () => last,
		stop() {
			stopped = true;
			cancel();
		},
	};
}
