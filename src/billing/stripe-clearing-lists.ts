import Stripe from "stripe";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { CURRENCY } from "./stripe-books.ts";
import { isNotFound } from "./stripe-client.ts";
import { applyStripeEvent, disputeState, isOwnSession, stripeId } from "./stripe-events.ts";
import { type Finding, recordFinding, resolveFinding } from "./stripe-findings.ts";
import { isAutomaticPayment } from "./stripe-paid.ts";

export interface Comparison {
	readonly tx: Transactional;
	readonly statements: Statements;
	readonly stripe: Stripe;
	readonly log: Log;
	readonly day: string;
	/** Start of the compared period, in Unix seconds. Older objects are not compared. */
	readonly sinceS: number;
	readonly outcome: {
		/** Objects in Stripe's lists that were compared. */
		compared: number;
		/** Objects that no event had reported and the comparison processed. */
		taken: number;
		/** Rows of the books that were looked up at Stripe one by one. */
		asked: number;
	};
	/** Checkout sessions that Stripe lists as paid. */
	readonly paid: Map<string, Stripe.Checkout.Session>;
	/** Payments by saved cards that Stripe lists as succeeded. */
	readonly charged: Map<string, Stripe.PaymentIntent>;
	readonly refunds: Set<string>;
	readonly disputes: Set<string>;
}

/** Days that are compared: pages live one day, slow payments take 14. Disputes take four months, with another limit. */
export const COMPARED_DAYS = 35;
const DISPUTE_DAYS = 150;
const DAY_S = 24 * 3_600;
/** Resolution text of a finding whose difference no longer exists. */
export const AGREES_AGAIN = "the same again";
/** Maximum number of objects per list. If there are more, a finding says that the others were not compared. */
const OBJECTS_MAX = 20_000;
/** Maximum number of refunds read per payment. */
const REFUNDS_MAX = 1_000;
const PAGE = 100;

/** Checks that the books contain everything in Stripe's lists, and processes objects that no event reported. */
export async function compareLists(clearing: Comparison): Promise<void> {
	await compareSessions(clearing);
	await compareIntents(clearing);
	await compareRefunds(clearing);
	await compareDisputes(clearing);
	await recordFees(clearing);
}

/** Reads a list of Stripe page by page, up to the limit. */
async function* limited<Item>(
	clearing: Comparison,
	name: string,
	list: AsyncIterable<Item>,
	most = OBJECTS_MAX,
): AsyncIterable<Item> {
	let seen = 0;
	for await (const item of list) {
		if (++seen > most) return recordUncompared(clearing, name, most);
		clearing.outcome.compared += 1;
		yield item;
	}
}

/** Checks that each paid session of this service was credited; otherwise records a finding. */
async function compareSessions(clearing: Comparison): Promise<void> {
	const { stripe, sinceS } = clearing;
	const sessions = stripe.checkout.sessions.list({ limit: PAGE, created: { gte: sinceS }, status: "complete" });
	for await (const session of limited(clearing, "sessions", sessions)) {
		if (session.payment_status !== "paid" || !isOwnSession(session)) continue;
		clearing.paid.set(session.id, session);
		const isKnown = await isCredited(clearing, stripeId(session.payment_intent), session.client_reference_id);
		if (!isKnown) await applyEvent(clearing, "checkout.session.completed", session);
	}
}

/** Checks that each payment by a saved card was credited; otherwise records a finding. */
async function compareIntents(clearing: Comparison): Promise<void> {
	const { stripe, sinceS } = clearing;
	const intents = stripe.paymentIntents.list({ limit: PAGE, created: { gte: sinceS } });
	for await (const intent of limited(clearing, "payments", intents)) {
		if (intent.status !== "succeeded" || !isAutomaticPayment(intent)) continue;
		clearing.charged.set(intent.id, intent);
		const isKnown = await isCredited(clearing, intent.id, intent.metadata?.top_up ?? null);
		if (!isKnown) await applyEvent(clearing, "payment_intent.succeeded", intent);
	}
}

async function isCredited({ statements }: Comparison, payment: string | null, topUp: string | null): Promise<boolean> {
	const rows = await statements`
		select 1 from stripe_payment p join top_up t on t.id = p.top_up_id
		where p.id = ${payment} and t.id = ${topUp} and t.state not in ('pending', 'rejected')`;
	return rows.length > 0;
}

/** Checks each payment with recent refunds. Reads all refunds of the payment, because older ones count too. */
async function compareRefunds(clearing: Comparison): Promise<void> {
	const { stripe, sinceS } = clearing;
	const payments = new Set<string>();
	const refunds = stripe.refunds.list({ limit: PAGE, created: { gte: sinceS } });
	for await (const refund of limited(clearing, "refunds", refunds)) {
		const paymentId = stripeId(refund.payment_intent);
		if (paymentId !== null) payments.add(paymentId);
	}
	for (const paymentId of payments) await compareRefund(clearing, paymentId);
}

/** Compares the refunds of one payment. Skips payments that the books do not know, which belong to other systems. */
export async function compareRefund(clearing: Comparison, paymentId: string): Promise<void> {
	const { statements } = clearing;
	if (clearing.refunds.has(paymentId)) return;
	clearing.refunds.add(paymentId);
	const [row] = await statements<{ refunded: string }>`
		select refunded_cents as refunded from stripe_payment where id = ${paymentId}`;
	if (row === undefined) return;
	const refunds = await refundsOf(clearing, paymentId);
	const sumCents = refunds.reduce((sum, { amount }) => sum + amount, 0);
	const last = refunds.at(-1);
	if (last !== undefined && sumCents > Number(row.refunded)) {
		const { charge, currency } = last;
		const sum = { id: stripeId(charge) ?? "", payment_intent: paymentId, amount_refunded: sumCents, currency };
		await applyEvent(clearing, "charge.refunded", sum);
	}
	const less = sumCents < Number(row.refunded) ? `Stripe refunded ${sumCents} cents, the books say more` : undefined;
	const reason = last !== undefined && last.currency !== CURRENCY ? "another currency" : less;
	const id = `refund:${paymentId}`;
	if (reason === undefined) await resolveFinding(clearing.tx, id, AGREES_AGAIN);
	else await addFinding(clearing, { id, kind: "refund", reason, amountCents: Number(row.refunded) - sumCents });
}

/** Returns none for a payment that Stripe does not know: a finding reports it, and the comparison continues. */
async function refundsOf(clearing: Comparison, paymentId: string): Promise<Stripe.Refund[]> {
	const refunds = new Map<string, Stripe.Refund>();
	const list = clearing.stripe.refunds.list({ limit: PAGE, payment_intent: paymentId });
	try {
		for await (const refund of limited(clearing, `refunds of ${paymentId}`, list, REFUNDS_MAX)) {
			if (refund.status === "failed" || refund.status === "canceled") continue;
			// A map by id: neither a refund on two pages nor one of another payment may take credit twice.
			if (stripeId(refund.payment_intent) === paymentId) refunds.set(refund.id, refund);
		}
	} catch (error) {
		if (!isNotFound(error)) throw error;
	}
	return [...refunds.values()];
}

/** Records Stripe's fees of credited payments, for the journal of payments. A Stripe key may lack that right. */
async function recordFees(clearing: Comparison): Promise<void> {
	const { stripe, statements, sinceS } = clearing;
	const created = { gte: sinceS };
	const list = stripe.balanceTransactions.list({ limit: PAGE, type: "charge", created, expand: ["data.source"] });
	const fees = new Map<string, number>();
	try {
		for await (const { source, currency, fee } of limited(clearing, "fees", list)) {
			const payment =
				typeof source === "object" && source?.object === "charge" ? stripeId(source.payment_intent) : null;
			if (payment !== null && currency === CURRENCY) fees.set(payment, fee);
		}
	} catch (error) {
		if (!(error instanceof Stripe.errors.StripePermissionError)) throw error;
	}
	// No fee is added to a sealed day: `books_now` is after the last sealed day.
	await statements`
		update stripe_payment p set fee_cents = f.cents::bigint, fee_at = books_now()
		from jsonb_each_text(${JSON.stringify(Object.fromEntries(fees))}::text::jsonb) f(id, cents)
		where p.id = f.id and p.fee_at is null and p.top_up_id is not null`;
}

async function compareDisputes(clearing: Comparison): Promise<void> {
	const { stripe, sinceS } = clearing;
	const since = sinceS - (DISPUTE_DAYS - COMPARED_DAYS) * DAY_S;
	const disputes = stripe.disputes.list({ limit: PAGE, created: { gte: since } });
	for await (const dispute of limited(clearing, "disputes", disputes)) {
		clearing.disputes.add(dispute.id);
		await compareDispute(clearing, dispute);
	}
}

export async function compareDispute(clearing: Comparison, dispute: Stripe.Dispute): Promise<void> {
	const { statements } = clearing;
	const paymentId = stripeId(dispute.payment_intent);
	const state = disputeState(dispute.status);
	const [payment] = await statements`select 1 from stripe_payment where id = ${paymentId} and top_up_id is not null`;
	if (payment === undefined || state === undefined) return;
	const read = () => statements<{ state: string; amount: string }>`
		select state, amount_cents as amount from stripe_dispute where id = ${dispute.id}`;
	let [row] = await read();
	if (row?.state !== state) {
		await applyEvent(clearing, "charge.dispute.updated", dispute);
		[row] = await read();
	}
	const agrees = row?.state === state && Number(row.amount) === dispute.amount && dispute.currency === CURRENCY;
	const id = `dispute:${dispute.id}`;
	if (agrees) return resolveFinding(clearing.tx, id, AGREES_AGAIN);
	const here = row === undefined ? "none" : `${row.state}, ${row.amount} cents`;
	const reason = `Stripe says ${state}, ${dispute.amount} cents ${dispute.currency}; the books say ${here}`;
	await addFinding(clearing, { id, kind: "dispute", reason, amountCents: dispute.amount });
}

/** Processes an object like the event that reports it, with the same checks and audit entry. */
export async function applyEvent(clearing: Comparison, type: Stripe.Event["type"], object: { id: string }) {
	const event = { id: newId("clearing"), type, data: { object } } as unknown as Stripe.Event;
	const outcome = await applyStripeEvent(clearing.tx, event);
	if (outcome === "ignored" || outcome === "known") return;
	clearing.outcome.taken += 1;
	clearing.log.warn("a payment was reported by no event", { event: event.id, type, object: object.id, outcome });
}

/** Records a finding. A resolved finding whose difference is back becomes open again. */
export async function addFinding(
	clearing: Comparison,
	finding: Pick<Finding, "id" | "kind" | "reason"> & { topUpId?: string; amountCents?: number },
): Promise<void> {
	const { id, kind, reason, topUpId = null, amountCents = null } = finding;
	await recordFinding(clearing.tx, { id, kind, reason, topUpId, amountCents, currency: CURRENCY }, AGREES_AGAIN);
}

export function recordUncompared(clearing: Comparison, name: string, most: number): Promise<void> {
	const reason = `more than ${most} ${name}: the rest was not compared`;
	return addFinding(clearing, { id: `${name}:${clearing.day}`, kind: "unfinished", reason });
}
