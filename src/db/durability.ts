import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { startWatch } from "../base/watch.ts";

type Durability = Awaited<ReturnType<typeof readDurability>>;

interface Row {
	readonly commit: string;
	readonly waited: string;
	readonly stuck: boolean;
	readonly standbys: string;
	readonly unreadable: string | null;
}

type Query = <Row>(strings: TemplateStringsArray) => Promise<readonly Row[]>;

/**
 * Reads how durable commits are. `standbys`: number of connected standbys. `isStuck`: commits wait for a standby that
 * does not answer. Null if the role may not read which standby is synchronous.
 */
export async function readDurability(statements: Query) {
	const [row] = await statements<Row>`
		select current_setting('synchronous_commit') as commit, current_setting('synchronous_standby_names') as waited,
			(select count(*) from pg_stat_replication) as standbys,
			(select count(*) = count(sync_state) and count(*) filter (where sync_state in ('sync', 'quorum')) = 0
				from pg_stat_replication) or exists (select 1 from pg_stat_activity where wait_event = 'SyncRep'
				and clock_timestamp() - query_start > interval '1 second') as stuck,
			(select string_agg(f, ', ') from unnest(array['pg_control_system()', 'pg_current_wal_lsn()', 'pg_current_wal_flush_lsn()',
				'pg_walfile_name(pg_lsn)']) f where not has_function_privilege(f, 'execute')) as unreadable`;
	const { commit = "on", waited = "", unreadable, stuck = false } = row ?? {};
	const waitedFor = waited.trim();
	const isStuck = stuck && waitedFor !== "" && !["off", "local"].includes(commit);
	return { commit, waitedFor, standbys: Number(row?.standbys), isStuck, unreadable: unreadable ?? "" };
}

/** Describes the synchronous standby that every commit waits for without an answer; undefined if there is none. */
export function standbyProblem({ isStuck, waitedFor }: Pick<Durability, "isStuck" | "waitedFor">): string | undefined {
	if (!isStuck) return undefined;
	return `no synchronous standby answers (synchronous_standby_names is ${waitedFor}): commits wait, and requests get 503 after a lease`;
}

/** Functions that the role may not call, so that a changed database server may go unnoticed; undefined if none. */
export function identityProblem({ unreadable }: Pick<Durability, "unreadable">): string | undefined {
	if (unreadable === "") return undefined;
	const then = unreadable.includes("wal")
		? "every restart of the database counts as a failover, and none is noticed without a restart"
		: "a failover is recognised by its timeline and position alone";
	return `this role may not call ${unreadable}: ${then}`;
}

/** Describes which usage this configuration can lose although clients got it confirmed; undefined if none. */
export function durabilityProblem({
	commit,
	waitedFor,
	standbys,
}: Omit<Durability, "unreadable" | "isStuck">): string | undefined {
	if (commit === "off")
		return "synchronous_commit is off: a crash of the database's machine can lose usage that it has confirmed";
	if (standbys === 0) return undefined;
	if (waitedFor === "")
		return "standbys follow asynchronously (synchronous_standby_names is empty): a failover can lose usage that was confirmed";
	if (commit === "local")
		return "synchronous_commit is local: no standby is waited for, and a failover can lose usage that was confirmed";
	return undefined;
}

/** Shorter than a lease: the log names a missing synchronous standby before requests fail for it. */
const LOOK_MS = 5_000;

export type DurabilityWatch = ReturnType<typeof startDurabilityWatch>;

/**
 * Watches whether the database can lose confirmed settlements, for log and readiness. Checks repeatedly, because
 * standbys come and go and a failover changes settings. `problem` is undefined before the first check, and if nothing
 * can be lost.
 */
export function startDurabilityWatch(deps: { read: () => Promise<Durability>; clock: Clock; log: Log }) {
	const { read, clock, log } = deps;
	async function look(): Promise<string | undefined> {
		const found = await read();
		const stuck = standbyProblem(found);
		const lossy = [durabilityProblem(found), identityProblem(found)].filter((one) => one !== undefined).join("; ");
		const problem = stuck ?? (lossy === "" ? undefined : lossy);
		if (problem !== undefined && problem !== watch.last())
			log.warn(stuck === undefined ? "this set-up can lose usage" : "commits wait for a standby", { problem });
		return problem;
	}
	const watch = startWatch(
		{ look, clock, log },
		{ what: "how the database keeps what it confirms", firstLookMs: 0, everyMs: LOOK_MS },
	);
	return { problem: watch.last, stop: watch.stop };
}
