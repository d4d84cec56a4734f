import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { startWatch } from "../base/watch.ts";

type Durability = Awaited<ReturnType<typeof readDurability>>;

type Query = <Row>(strings: TemplateStringsArray) => Promise<readonly Row[]>;

/** Reads how durable commits are. `standbys`: number of standbys that follow now. */
export async function readDurability(statements: Query) {
	const [row] = await statements<{ commit: string; waited: string; standbys: string; unreadable: string | null }>`
		select current_setting('synchronous_commit') as commit, current_setting('synchronous_standby_names') as waited,
			(select count(*) from pg_stat_replication) as standbys,
			(select string_agg(f, ', ') from unnest(array['pg_control_system()', 'pg_current_wal_lsn()', 'pg_current_wal_flush_lsn()',
				'pg_walfile_name(pg_lsn)']) f where not has_function_privilege(f, 'execute')) as unreadable`;
	const { commit = "on", waited: waitedFor = "", unreadable } = row ?? {};
	return { commit, waitedFor, standbys: Number(row?.standbys), unreadable: unreadable ?? "" };
}

/** What the role may not call, so that another server is recognised less surely; undefined if nothing. */
export function identityProblem({ unreadable }: Pick<Durability, "unreadable">): string | undefined {
	if (unreadable === "") return undefined;
	const then = unreadable.includes("wal")
		? "every restart of the database counts as a failover, and none is noticed without a restart"
		: "a failover is recognised by its timeline and position alone";
	return `this role may not call ${unreadable}: ${then}`;
}

/** The confirmed usage that this set-up can lose, since confirmed journal records are deleted; undefined if none. */
export function durabilityProblem({ commit, waitedFor, standbys }: Omit<Durability, "unreadable">): string | undefined {
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
		const found = await read();
		const problems = [durabilityProblem(found), identityProblem(found)].filter((one) => one !== undefined);
		const problem = problems.length === 0 ? undefined : problems.join("; ");
		if (problem !== undefined && problem !== watch.last()) log.warn("this set-up can lose usage", { problem });
		return problem;
	}
	const watch = startWatch({ look, clock, log }, { what: "how the database keeps what it confirms", firstLookMs: 0 });
	return { problem: watch.last, stop: watch.stop };
}
