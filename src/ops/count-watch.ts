import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";

/** A number of the database that readiness and metrics know without asking. */
export interface CountWatch {
	/** Undefined before the first look. */
	last(): number | undefined;
	stop(): void;
}

const FIRST_LOOK_MS = 1_000;
const LOOK_MS = 60_000;

/** Looks once a minute. While the database is away the last number stands. `what` is for the log. */
export function startCountWatch(deps: {
	what: string;
	count: () => Promise<number>;
	clock: Clock;
	log: Log;
}): CountWatch {
	const { what, count, clock, log } = deps;
	let last: number | undefined;
	let stopped = false;
	let cancel = clock.after(FIRST_LOOK_MS, look);

	function look(): void {
		count()
			.then(
				(found) => {
					last = found;
				},
				(error) => log.debug("a number could not be read", { what, error }),
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
