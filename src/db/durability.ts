import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { startWatch } from "../base/watch.ts";

type Durability = Awaited<ReturnType<typeof readDurability>>;

type Query = <Row>(strings: TemplateStringsArray) => Promise<readonly Row[]>;

/** Reads how durable commits are. `standbys`: number of standbys that follow now. */
export async function readDurability(statements: Query) {
	const [row] = await statements<{ commit: string; waited: string; standbys: string }>`
		select current_setting('synchronous_commit') as commit, current_setting('synchronous_standby_names') as waited,
			(select count(*) from pg_stat_replication) as standbys`;
	return { commit: row?.commit ?? "on", waitedFor: row?.waited ?? "", standbys: Number(row?.standbys) };
}

/** Says which settlements this set-up can lose after their journal records were deleted; undefined if none. */
export function durabilityProblem({ commit, waitedFor, standbys }: Durability): string | undefined {
	if (commit === "off")
		return "synchronous_commit is off: a crash of the database's machine can lose usage that it has confirmed";
	if (standbys === 0) return undefined;
	if (waitedFor.trim() === "")
		return "standbys follow asynchronously (synchronous_standby_names is empty): a failover can lose usage that was confirmed";
	if (commit === "local")
		return "synchronous_commit is local: no standby is waited for, and a failover can lose usage that was confirmed";
	return undefined;
}

export type DurabilityWatch = ReturnType<typeof startDurabilityWatch>;

/**
 * Watches whether the database can lose confirmed settlements, for log and readiness. Checks repeatedly, since standbys
 * come and go and a failover changes settings. `problem` is undefined if nothing can be lost, or before the first
 * check.
 */
export function startDurabilityWatch(deps: { read: () => Promise<Durability>; clock: Clock; log: Log }) {
	const { read, clock, log } = deps;
	async function look(): Promise<string | undefined> {
		const problem = durabilityProblem(await read());
		if (problem !== undefined && problem !== watch.last()) log.warn("this set-up can lose usage", { problem });
		return problem;
	}
	const watch = startWatch({ look, clock, log }, { what: "how the database keeps what it confirms", firstLookMs: 0 });
	return { problem: watch.last, stop: watch.stop };
}
