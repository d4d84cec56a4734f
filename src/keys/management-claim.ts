import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import { type DigestFunction, derivedHex } from "./secret.ts";

/** The creation of an object, which a client may repeat with the same token. */
export interface CreationClaim {
	/** Id of the management key or of the page's user. Each has separate tokens. */
	readonly by: string;
	readonly token: string;
	/** Content of the request. A repetition must have the same text. */
	readonly request: string;
	/** Id for the new object, used if no earlier request had this token. */
	readonly subject: string;
	/** Current time. A claim expires only by both this clock and the database's, because either may be set forward. */
	readonly nowMs: number;
}

const KEPT_HOURS = 24;

/**
 * Returns the id for this creation: that of the first request with the token, however often it is repeated. Stores only
 * keyed digests. Fault `idempotency_mismatch` if the token was used within a day for another request.
 */
export async function claimCreatedId(
	{ statements, digest }: { statements: Statements; digest: DigestFunction },
	claim: CreationClaim,
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
		throw new Fault("idempotency_mismatch", "This token was used for another request. Use a new one.");
	return row.subject;
}

/** Deletes expired claims; called by a console's job. */
export async function deleteOldManagementClaims(statements: Statements, nowMs: number): Promise<void> {
	await statements`
		delete from management_claim where at < least(clock_timestamp(), to_timestamp(${nowMs}::double precision / 1000.0))
			- make_interval(hours => ${KEPT_HOURS}::integer)`;
}
