import type { Statements } from "../db/statements.ts";

/** Readiness warning while Stripe and the ledger disagree on a payment. */
export const PAYMENTS_DIFFER = "a card payment and the books do not agree: see the operators' first page";
/** Reason of a finding while its payment has arrived but its effects are not committed. */
export const RECEIVED = "received";
/** Seconds after which a payment that is still `received` counts as stuck. */
export const PROCESSING_S = 60;

/** Counts open findings, except payments that are being processed now. One index lookup. */
export async function countOpenFindings(statements: Statements): Promise<number> {
	const [row] = await statements<{ count: string }>`
		select count(*) as count from stripe_finding where resolved_at is null
			and (reason <> ${RECEIVED} or found_at < clock_timestamp() - make_interval(secs => ${PROCESSING_S}::integer))`;
	return Number(row?.count);
}
