import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { BooksHistory, BooksRun } from "./reconciler.ts";

/** What a gateway knows of the books, which a console's process checks: for readiness and metrics. */
export interface BooksWatch {
	/** The newest check; undefined before there was one. */
	last(): Pick<BooksRun, "ok" | "atMs"> | undefined;
	stop(): void;
}

const FIRST_LOOK_MS = 5_000;
const LOOK_MS = 60_000;
const KEPT_MS = 365 * 24 * 3_600_000;

export function startBooksWatch(deps: { history: Pick<BooksHistory, "newest">; clock: Clock; log: Log }): BooksWatch {
	const { history, clock, log } = deps;
	let last: Pick<BooksRun, "ok" | "atMs"> | undefined;
	let stopped = false;
	let cancel = clock.after(FIRST_LOOK_MS, look);

	function look(): void {
		history
			.newest(KEPT_MS)
			.then(
				(run) => {
					last = run;
				},
				(error) => log.debug("what was found in the books could not be read", { error }),
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
