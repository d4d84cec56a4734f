import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Durability } from "../db/durability.ts";
import { durabilityProblem } from "../db/durability.ts";

/** Whether the database can lose what it has confirmed: for the log at the start, and for readiness. */
export interface DurabilityWatch {
	/** What can be lost and when; undefined if nothing, or before the first look. */
	problem(): string | undefined;
	stop(): void;
}

/** Standbys come and go, and a failover changes the settings with the server. */
const LOOK_MS = 60_000;

/** Looks at once and once a minute. While the database is away the last word stands. */
export function startDurabilityWatch(deps: {
	read: () => Promise<Durability>;
	clock: Clock;
	log: Log;
}): DurabilityWatch {
	const { read, clock, log } = deps;
	let problem: string | undefined;
	let stopped = false;
	let cancel = clock.after(0, look);

	function look(): void {
		read()
			.then(
				(found) => {
					const before = problem;
					problem = durabilityProblem(found);
					if (problem !== undefined && problem !== before) log.warn("this set-up can lose usage", { problem });
				},
				(error) => log.debug("how the database keeps what it confirms could not be read", { error }),
			)
			.finally(() => {
				if (!stopped) cancel = clock.after(LOOK_MS, look);
			});
	}

	return {
		problem: () => problem,
		stop() {
			stopped = true;
			cancel();
		},
	};
}
