import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

export type Watch<T> = ReturnType<typeof startWatch<T>>;

const LOOK_MS = 60_000;

/**
 * An external value, known without a query: for readiness and metrics. Looks once a minute. The last value stays while
 * a look fails. `what` is for the log.
 */
export function startWatch<T>(
	deps: { look: () => Promise<T>; clock: Clock; log: Log },
	options: { what: string; firstLookMs: number },
) {
	const { clock, log } = deps;
	let last: T | undefined;
	let stopped = false;
	let cancel = clock.after(options.firstLookMs, look);

	function look(): void {
		deps
			.look()
			.then(
				(found) => {
					last = found;
				},
				(error) => log.debug("a watched value could not be read", { what: options.what, error }),
			)
			.finally(() => {
				if (!stopped) cancel = clock.after(LOOK_MS, look);
			});
	}

	return {
		/** Undefined before the first look. */
		last: () => last,
		stop() {
			stopped = true;
			cancel();
		},
	};
}
