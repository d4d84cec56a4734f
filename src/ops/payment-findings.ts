import type { Statements } from "../db/statements.ts";

/** The readiness warning while a finding is open. */
export const PAYMENTS_DIFFER = "a card payment and the books do not agree: see the operators' first page";
/** The reason of a finding whose payment has arrived while its effect is not committed yet. */
export const RECEIVED = "received";
/** Longer than processing an event takes; a payment still `received` after this is stuck. */
export const IN_HAND_S = 60;

/** Counts open findings, without payments whose event is being processed right now. One index lookup. */
export async function countOpenFindings(statements: Statements): Promise<number> {
	const [row] = await statements<{ count: string }>`
		select count(*) as count from stripe_finding where resolved_at is null
			and (reason <> ${RECEIVED} or found_at < clock_timestamp() - make_interval(secs => ${IN_HAND_S}::integer))`;
	return Number(row?.count);
}
