import type { Statements } from "../db/statements.ts";

/** Warning of `/readyz` while Stripe and the books disagree about a payment. */
export const PAYMENTS_DIFFER = "a card payment and the books do not agree: see the operators' first page";
/** Reason of a finding whose payment has arrived, but is not booked yet. */
export const RECEIVED = "received";
/** Seconds after which a payment that is still `received` counts as stuck. */
export const PROCESSING_S = 60;

/** Counts open findings without payments that are being processed. Costs one index look-up. */
export async function countOpenFindings(statements: Statements): Promise<number> {
	const [row] = await statements<{ count: string }>`
		select count(*) as count from stripe_finding where resolved_at is null
			and (reason <> ${RECEIVED} or found_at < clock_timestamp() - make_interval(secs => ${PROCESSING_S}::integer))`;
	return Number(row?.count);
}
