import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";

/** Age at which counters are deleted: longer than any counting window. */
const FORGOTTEN_AFTER_HOURS = 48;

/**
 * Adds `by` to the subject's counter, which all instances share, and returns the count. The first count starts a
 * window. Stores only a hash of the subject, because addresses of strangers must not be kept.
 */
export async function countWithin(statements: Statements, what: string, subject: string, windowMs: number, by = 1) {
	const rows = await statements<{ count: number; ends_in: number }>`
		insert into rate_count as r (key, count, started_at) values (${keyOf(what, subject)}, ${by}::integer, clock_timestamp())
		on conflict (key) do update set
			count = case when excluded.started_at - r.started_at > make_interval(secs => ${windowMs / 1000}::float8) then excluded.count else r.count + excluded.count end,
			started_at = case when excluded.started_at - r.started_at > make_interval(secs => ${windowMs / 1000}::float8) then excluded.started_at else r.started_at end
		returning count, (extract(epoch from started_at - clock_timestamp()) * 1000)::float8 + ${windowMs}::float8 as ends_in`;
	const { count, ends_in } = onlyRow(rows);
	return { count, endsInMs: Math.max(0, ends_in) };
}

/** Deletes old counters, in this table and in the sign-in library's. */
export async function deleteOldCounts(statements: Statements): Promise<void> {
	await statements`delete from rate_limit where last_request < (extract(epoch from clock_timestamp()) * 1000)::bigint - ${FORGOTTEN_AFTER_HOURS}::bigint * 3600000`;
	await statements`delete from rate_count where started_at < clock_timestamp() - make_interval(hours => ${FORGOTTEN_AFTER_HOURS}::integer)`;
}

const keyOf = (what: string, subject: string) =>
	`${what}:${new Bun.CryptoHasher("sha256").update(subject).digest("hex")}`;

/** Subtracts `by`, for an attempt that was counted in advance and then succeeded. */
export async function subtractCount(statements: Statements, what: string, subject: string, by = 1): Promise<void> {
	await statements`update rate_count set count = greatest(0, count - ${by}::integer) where key = ${keyOf(what, subject)}`;
}
