import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import type { Digest } from "./digest.ts";
import { derivedHex } from "./digest.ts";

/** A creation that may be repeated. */
export interface Claim {
	/** Which management key asks, or whose page: tokens of others are not its. */
	readonly by: string;
	/** The client's. */
	readonly token: string;
	/** What is asked for, the same text each time. */
	readonly request: string;
	/** The id under which it is made, if it was not asked for before. */
	readonly subject: string;
	/** The day is over by the database's clock and by this one: either may be set forward, and then it would be made twice. */
	readonly nowMs: number;
}

const KEPT_HOURS = 24;

/**
 * The id under which this creation is made, however often and by how many at once it is asked for: the first one's. Neither
 * token nor request is stored, only what the pepper makes of them. Fault idempotency_mismatch if the token was used for
 * something else within the day.
 */
export async function claimSubject(
	{ statements, digest }: { statements: Statements; digest: Digest },
	claim: Claim,
): Promise<string> {
	const id = derivedHex(digest, "claim", claim.by, claim.token).slice(0, 64);
	const request = derivedHex(digest, "claimed request", claim.request).slice(0, 64);
	await statements`
		insert into management_claim as c (id, request, subject, at)
			values (${id}, ${request}, ${claim.subject}, greatest(clock_timestamp(), to_timestamp(${claim.nowMs}::double precision / 1000.0)))
		on conflict (id) do update set request = excluded.request, subject = excluded.subject, at = excluded.at
			where c.at < least(clock_timestamp(), to_timestamp(${claim.nowMs}::double precision / 1000.0))
				- make_interval(hours => ${KEPT_HOURS}::integer)`;
	const [row] = await statements<{ request: string; subject: string }>`
		select request, subject from management_claim where id = ${id}`;
	if (row?.request !== request)
		throw new Fault("idempotency_mismatch", "This token was used for another request. Use a fresh one.");
	return row.subject;
}

/** A console's job. */
export async function forgetOldManagementClaims(statements: Statements, nowMs: number): Promise<void> {
	await statements`
		delete from management_claim where at < least(clock_timestamp(), to_timestamp(${nowMs}::double precision / 1000.0))
			- make_interval(hours => ${KEPT_HOURS}::integer)`;
}
