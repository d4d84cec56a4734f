import { newId } from "../base/id.ts";
import type { Statements } from "../db/statements.ts";

/** Longer than any window, the sign-in library's too, whose counts are in the same table. */
const FORGOTTEN_AFTER_MS = 2 * 24 * 3600_000;

/** What a count within a window came to. */
export interface Counted {
	readonly count: number;
	/** When the window ends and the count begins anew. */
	readonly endsInMs: number;
}

/**
 * Counts one more of `subject` in the database, so for all instances together; a window begins with the first. The
 * subject is stored as a hash: addresses of people who are no customers are nobody's to keep.
 */
export async function countWithin(
	statements: Statements,
	what: string,
	subject: string,
	windowMs: number,
): Promise<Counted> {
	const key = `${what}:${new Bun.CryptoHasher("sha256").update(subject).digest("hex")}`;
	const [row] = await statements<{ count: number; ends_in: number }>`
		insert into rate_limit as r (id, key, count, last_request)
		values (${newId("rl")}, ${key}, 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)
		on conflict (key) do update set
			count = case when excluded.last_request - r.last_request > ${windowMs}::bigint then 1 else r.count + 1 end,
			last_request = case when excluded.last_request - r.last_request > ${windowMs}::bigint then excluded.last_request else r.last_request end
		returning count, (last_request + ${windowMs}::bigint - extract(epoch from clock_timestamp()) * 1000)::float8 as ends_in`;
	return { count: row?.count ?? 1, endsInMs: Math.max(0, row?.ends_in ?? windowMs) };
}

/** Whoever came once would stay in the table for ever. */
export async function forgetOldCounts(statements: Statements): Promise<void> {
	await statements`delete from rate_limit where last_request < (extract(epoch from clock_timestamp()) * 1000)::bigint - ${FORGOTTEN_AFTER_MS}::bigint`;
}
