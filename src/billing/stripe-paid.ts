import type Stripe from "stripe";
import {
	CURRENCY,
	confirmPaidTopUp,
	lockTopUp,
	type PaidTopUp,
	settlePayment,
	statementsIn,
	type Transaction,
} from "./stripe-books.ts";
import { resolveFinding, setFindingReason } from "./stripe-findings.ts";

/** `outcome` is `applied`, `ignored` (nothing to do), or the reason for refusing the event. */
export type Outcome = { readonly outcome: string; readonly subject: string; readonly detail: Record<string, unknown> };

/** Reason of a payment that is credited only after the account has spent some credit. */
export const NO_ROOM_REASON = "paid, not credited: the account would hold more credit than can be counted";

/** The payment of a top-up, as Stripe reports it. */
interface Paid {
	readonly paymentId: string;
	readonly topUpId: string;
	readonly amountCents: number | null;
	readonly currency: string | null;
}

/** Credits the payment once if amount and currency are the top-up's. Otherwise returns why it is not credited. */
export async function creditPayment(tx: Transaction, paid: Paid): Promise<string | undefined> {
	const { paymentId, topUpId } = paid;
	const topUp = await lockTopUp(tx, topUpId);
	if (topUp === undefined || topUp.method !== "card") return "refused: there is no such card top-up";
	if (paid.currency !== CURRENCY) return "refused: another currency";
	if (paid.amountCents !== topUp.amountCents) return "refused: another amount";
	const [row] = await statementsIn(tx)<{ top_up_id: string }>`
		insert into stripe_payment as p (id, top_up_id)
		select ${paymentId}, ${topUpId} where not exists (select 1 from stripe_payment o where o.top_up_id = ${topUpId} and o.id <> ${paymentId})
		on conflict (id) do update set top_up_id = coalesce(p.top_up_id, excluded.top_up_id) returning top_up_id`;
	if (row === undefined) return "refused: the top-up was paid by another payment";
	if (row.top_up_id !== topUpId) return "refused: the payment has paid another top-up";
	return (await creditTopUp(tx, paymentId, topUp)) ? undefined : NO_ROOM_REASON;
}

/** Credits the top-up. False if the account's credit would exceed the largest amount. */
export async function creditTopUp(tx: Transaction, paymentId: string, topUp: PaidTopUp): Promise<boolean> {
	const credited = await confirmPaidTopUp(tx, topUp);
	if (credited === undefined) return false;
	await settlePayment(tx, paymentId, credited);
	if (credited !== topUp) await haltForRefunds(tx, paymentId);
	await resolveFinding(tx, `paid:${paymentId}`, "credited");
	return true;
}

/** True for payments of automatic top-ups. Payments on Stripe's pages are reported as sessions and ignored here. */
export const isAutomaticPayment = ({ metadata }: Stripe.PaymentIntent): boolean =>
	metadata?.attempt?.startsWith("att_") === true && metadata.top_up?.startsWith("top_") === true;

/** Credits a charge of a saved card and ends its attempt, whatever state the attempt is in. */
export async function handlePaidIntent(tx: Transaction, intent: Stripe.PaymentIntent): Promise<Outcome> {
	const { attempt = "", top_up: topUpId = "" } = intent.metadata ?? {};
	const facts = { attempt, payment: intent.id, amount: intent.amount_received, currency: intent.currency };
	const result = (outcome: string): Outcome => ({ outcome, subject: topUpId, detail: facts });
	if (!isAutomaticPayment(intent) || intent.status !== "succeeded") return result("ignored");
	const [known] = await statementsIn(tx)<{ account_id: string }>`
		select account_id from auto_top_up_attempt where id = ${attempt} and top_up_id = ${topUpId}`;
	const refused =
		known === undefined
			? "refused: this payment is of no attempt of ours"
			: await creditPayment(tx, {
					paymentId: intent.id,
					topUpId,
					amountCents: intent.amount_received,
					currency: intent.currency,
				});
	if (known !== undefined) {
		await statementsIn(tx)`
			update auto_top_up_attempt set state = 'succeeded', reason = null, payment_id = ${intent.id},
				ended_at = coalesce(ended_at, clock_timestamp()) where id = ${attempt} and state <> 'succeeded'`;
		await resolveFinding(tx, `open:${attempt}`, "paid");
		if (refused !== undefined) await haltAutomaticTopUps(tx, known.account_id, "uncredited");
	}
	if (refused === undefined) return result("applied");
	await setFindingReason(tx, `paid:${intent.id}`, refused);
	return result(refused);
}

/** Schedules a query to Stripe about an automatic payment that changed. */
export async function handleChangedIntent(tx: Transaction, intent: Stripe.PaymentIntent): Promise<Outcome> {
	const { attempt = "", top_up: subject = "" } = intent.metadata ?? {};
	const detail = { attempt, payment: intent.id, status: intent.status };
	if (!isAutomaticPayment(intent)) return { outcome: "ignored", subject, detail };
	await statementsIn(tx)`
		update auto_top_up_attempt set look_at = now() where id = ${attempt} and state in ('sent', 'unknown')`;
	return { outcome: "applied", subject, detail };
}

/** Stops automatic top-ups because of refunds or disputes of a payment that were reported before the payment itself. */
export async function haltForRefunds(tx: Transaction, paymentId: string): Promise<void> {
	const [row] = await statementsIn(tx)<{ account_id: string; reason: "refunded" | "disputed" | null }>`
		select t.account_id, case when p.refunded_cents > 0 then 'refunded'
			when exists (select 1 from stripe_dispute d where d.payment_id = p.id and d.state <> 'won') then 'disputed' end as reason
		from stripe_payment p join top_up t on t.id = p.top_up_id where p.id = ${paymentId}`;
	if (row !== undefined && row.reason !== null) await haltAutomaticTopUps(tx, row.account_id, row.reason);
}

/** Stops automatic top-ups after a refund or dispute, because the same card must not buy the missing credit again. */
export async function haltAutomaticTopUps(
	tx: Transaction,
	accountId: string,
	reason: "refunded" | "disputed" | "uncredited",
): Promise<void> {
	await statementsIn(tx)`select auto_top_up_halt(${accountId}, 'stopped', ${reason})`;
}
