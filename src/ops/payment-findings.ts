import type { Statements } from "../db/statements.ts";

/** What readiness says while there is one. */
export const PAYMENTS_DIFFER = "a card payment and the books do not agree: see the operators' first page";
/** The reason of a finding while its payment has arrived and what follows from it is not committed. */
export const RECEIVED = "received";
/** Longer than taking an event takes; what is still only received then is in nobody's hands. */
export const IN_HAND_S = 60;

/** How many are open, without payments whose event is being taken in at this moment. One look at an index. */
export async function countOpenFindings(statements: Statements): Promise<number> {
	const [row] = await statements<{ count: string }>`
		select count(*) as count from stripe_finding where resolved_at is null
			and (reason <> ${RECEIVED} or found_at < clock_timestamp() - make_interval(secs => ${IN_HAND_S}::integer))`;
	return Number(row?.count);
}
