/** How durable the server's commits are. */
export interface Durability {
	readonly commit: string;
	readonly waitedFor: string;
	/** Standbys that follow now. */
	readonly standbys: number;
}

type Ask = <Row>(strings: TemplateStringsArray) => Promise<readonly Row[]>;

export async function readDurability(statements: Ask): Promise<Durability> {
	const [row] = await statements<{ commit: string; waited: string; standbys: string }>`
		select current_setting('synchronous_commit') as commit, current_setting('synchronous_standby_names') as waited,
			(select count(*) from pg_stat_replication) as standbys`;
	return { commit: row?.commit ?? "on", waitedFor: row?.waited ?? "", standbys: Number(row?.standbys) };
}

/** The confirmed usage that this set-up can lose, since confirmed journal records are deleted; undefined if none. */
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
