import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/** An external value, known without a query: for readiness and metrics. */
export interface Watch<T> {
	/** Undefined before the first look. */
	last(): T | undefined;
	stop(): void;
}

const LOOK_MS = 60_000;

/** Looks once a minute. The last value stays while a look fails. `what` is for the log. */
export function startWatch<T>(
	deps: { look: () => Promise<T>; clock: Clock; log: Log },
	options: { what: string; firstLookMs: number },
): Watch<T> {
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
				(error) => log.debug("what is watched could not be read", { what: options.what, error }),
			)
			.finally(() => {
				if (!stopped) cancel = clock.after(LOOK_MS, look);
			});
	}

	return {
		last: () => last,
		stop() {
			stopped = true;
			cancel();
		},
	};
}
