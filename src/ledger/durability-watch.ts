import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { startWatch } from "../base/watch.ts";
import { type Durability, durabilityProblem } from "../db/durability.ts";

export type DurabilityWatch = ReturnType<typeof startDurabilityWatch>;

/**
 * Watches whether the database can lose data that it has confirmed: for the log at the start, and for readiness. Checks
 * at once and repeatedly: standbys come and go, and a failover changes the settings.
 */
export function startDurabilityWatch(deps: { read: () => Promise<Durability>; clock: Clock; log: Log }) {
	const { read, clock, log } = deps;
	async function look(): Promise<string | undefined> {
		const problem = durabilityProblem(await read());
		if (problem !== undefined && problem !== watch.last()) log.warn("this set-up can lose usage", { problem });
		return problem;
	}
	const watch = startWatch({ look, clock, log }, { what: "how the database keeps what it confirms", firstLookMs: 0 });
	/** What can be lost and when; undefined if nothing, or before the first check. */
	const problem = watch.last;
	return { problem, stop: watch.stop };
}
