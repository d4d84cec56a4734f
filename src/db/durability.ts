/** How a server keeps what it has confirmed. */
export interface Durability {
	/** `synchronous_commit`. */
	readonly commit: string;
	/** `synchronous_standby_names`; empty: no standby is waited for. */
	readonly waitedFor: string;
	/** Standbys that follow now. */
	readonly standbys: number;
}

/** A client that takes a statement, of whichever kind. */
type Ask = <Row>(strings: TemplateStringsArray) => Promise<readonly Row[]>;

export async function readDurability(statements: Ask): Promise<Durability> {
	const [row] = await statements<{ commit: string; waited: string; standbys: string }>`
		select current_setting('synchronous_commit') as commit, current_setting('synchronous_standby_names') as waited,
			(select count(*) from pg_stat_replication) as standbys`;
	return { commit: row?.commit ?? "on", waitedFor: row?.waited ?? "", standbys: Number(row?.standbys) };
}

/**
 * What of the usage that was confirmed this set-up can lose, and when; undefined if nothing. Journals are gone once
 * Postgres has confirmed what stands in them.
 */
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
