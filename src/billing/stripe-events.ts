import { type SQL, sql } from "drizzle-orm";
import type Stripe from "stripe";
import type { Transactional } from "../db/transactional.ts";
import { centsRoundedDown, MAX_NANO_USD } from "../money/nano-usd.ts";
import { auditNote, auditNotesJson } from "../ops/audit.ts";
import type { AuditAction, StripeEvent } from "../ops/audit-action.ts";
import { RECEIVED } from "../ops/payment-findings.ts";
import {
	CURRENCY,
	errorSqlState,
	hasOpenLease,
	lockTopUp,
	type PaidTopUp,
	settlePayment,
	statementsIn,
	type Transaction,
} from "./stripe-books.ts";
import { type Finding, recordFinding, resolveFinding, setFindingReason } from "./stripe-findings.ts";
import {
	creditPayment,
	creditTopUp,
	haltAutomaticTopUps,
	haltForRefunds,
	handleChangedIntent,
	handlePaidIntent,
	isAutomaticPayment,
	NO_ROOM_REASON,
	type Outcome,
} from "./stripe-paid.ts";
import { TOP_UP_NANO_USD_MAX } from "./top-ups.ts";

const DEADLOCK = "40P01";
const LOCK_NOT_AVAILABLE = "55P03";
const ATTEMPTS_MAX = 5;
const COLLECTED_AT_ONCE_MAX = 100;
const NO_SUM = "refused: its amount is none";

/**
 * Processes a verified event once: its id, effects and audit entry commit together. Returns `applied`, `ignored`,
 * `known`, or why the event was refused; Stripe does not send refused events again. A payment is recorded first, so
 * that a payment without credit always raises an alert.
 */
export async function applyStripeEvent(db: Transactional, event: Stripe.Event): Promise<string> {
	const received = receivedOf(event);
	if (received !== undefined) await recordFinding(db, { kind: "uncredited", reason: RECEIVED, ...received });
	for (let attempt = 1; ; attempt++) {
		try {
			return await db.transaction((tx) => take(tx, event));
		} catch (error) {
			if (attempt >= ATTEMPTS_MAX || errorSqlState(error) !== DEADLOCK) throw error;
		}
	}
}

/**
 * Collects refunds that are still owed because instances held or requests spent the credit, and books what concurrent
 * events left. Accounts with available credit come first. Accounts whose leases are recalled come in random order, so
 * that a dead instance's lease blocks no account. Accounts with nothing to take are skipped.
 */
export async function collectRefunds(db: Transactional): Promise<void> {
	// Starts from the few payments that owe something, because a join would read all payments.
	const owed = await statementsIn(db)<{ id: string; top_up_id: string }>`
		(select p.id, t.id as top_up_id from stripe_payment p
			cross join lateral (select * from top_up x where x.id = p.top_up_id limit 1) t
			cross join lateral (select * from budget x where x.id = t.account_id limit 1) b
			where p.booked_refund_cents < p.refunded_cents and p.booked_refund_cents < t.amount_nano_usd / 10000000
				and t.state not in ('pending', 'rejected')
				and (b.limit_nano_usd - b.drawn_nano_usd >= 10000000 or ${hasOpenLease(sql`b.id`)})
			order by b.limit_nano_usd - b.drawn_nano_usd >= 10000000 desc, random() limit ${COLLECTED_AT_ONCE_MAX})
		union
		(select p.id, t.id from stripe_dispute d
			cross join lateral (select * from stripe_payment x where x.id = d.payment_id limit 1) p
			cross join lateral (select * from top_up x where x.id = p.top_up_id limit 1) t
			cross join lateral (select * from budget x where x.id = t.account_id limit 1) b
			where ((d.booked = 'nothing' and d.state <> 'won') or (d.booked = 'taken' and d.state = 'won'))
				and (d.state <> 'won' or b.limit_nano_usd - b.drawn_nano_usd <= ${MAX_NANO_USD}::bigint - d.amount_cents * 10000000)
				and t.state not in ('pending', 'rejected')
			order by d.payment_id limit ${COLLECTED_AT_ONCE_MAX})
		order by 1`;
	for (const { id, top_up_id } of owed) await withTopUp(db, top_up_id, (tx, topUp) => settlePayment(tx, id, topUp));
}

/** Skips a top-up whose row is locked; the next call handles it. */
async function withTopUp(db: Transactional, id: string, work: (tx: Transaction, topUp: PaidTopUp) => Promise<unknown>) {
	try {
		await db.transaction(async (tx) => {
			await statementsIn(tx)`set local lock_timeout = '1s'`;
			const topUp = await lockTopUp(tx, id);
			if (topUp !== undefined) await work(tx, topUp);
		});
	} catch (error) {
		if (errorSqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
	}
}

/** Credits payments that did not fit below the largest credit before. In random order, so that none blocks others. */
export async function creditHeldPayments(db: Transactional): Promise<void> {
	const waiting = await statementsIn(db)<{ id: string; top_up_id: string }>`
		select p.id, p.top_up_id from stripe_finding f join stripe_payment p on f.id = 'paid:' || p.id
		where f.resolved_at is null and f.reason = ${NO_ROOM_REASON} and p.top_up_id is not null
		order by random() limit ${COLLECTED_AT_ONCE_MAX}`;
	for (const { id, top_up_id } of waiting) await withTopUp(db, top_up_id, (tx, topUp) => creditTopUp(tx, id, topUp));
}

type PaidEvent = Stripe.CheckoutSessionCompletedEvent | Stripe.CheckoutSessionAsyncPaymentSucceededEvent;

function isPaid(event: Stripe.Event): event is PaidEvent {
	return (
		(event.type === "checkout.session.completed" || event.type === "checkout.session.async_payment_succeeded") &&
		event.data.object.payment_status === "paid"
	);
}

/** True if a session belongs to this service: other systems may use the same Stripe account. */
export const isOwnSession = ({ client_reference_id }: Stripe.Checkout.Session) =>
	client_reference_id?.startsWith("top_") === true;

const findingOf = (session: Stripe.Checkout.Session) => `paid:${stripeId(session.payment_intent) ?? session.id}`;

/** The payment of a paid session, as a finding until it is credited; undefined for other events. */
function receivedOf(event: Stripe.Event): Omit<Finding, "kind" | "reason"> | undefined {
	if (isPaid(event) && isOwnSession(event.data.object)) {
		const session = event.data.object;
		const { client_reference_id: topUpId, amount_total: amountCents, currency } = session;
		return { id: findingOf(session), topUpId, amountCents, currency };
	}
	if (event.type === "payment_intent.succeeded" && isAutomaticPayment(event.data.object)) {
		const { id, metadata, amount_received: amountCents, currency } = event.data.object;
		return { id: `paid:${id}`, topUpId: metadata?.top_up ?? null, amountCents, currency };
	}
	return undefined;
}

async function take(tx: Transaction, event: Stripe.Event): Promise<string> {
	const fresh = await statementsIn(tx)`
		insert into stripe_event (id, type, outcome, detail) values (${event.id}, ${event.type}, '', '{}'::jsonb)
		on conflict do nothing returning id`;
	if (fresh.length === 0) return "known";
	const action: AuditAction = `stripe.${event.type as StripeEvent}`;
	const { outcome, subject, detail } = await apply(tx, event);
	await statementsIn(tx)`
		update stripe_event set outcome = ${outcome}, detail = ${JSON.stringify(detail)}::text::jsonb where id = ${event.id}`;
	if (outcome !== "ignored") {
		const act = auditNote({ actor: "stripe", action, ip: null, detail: { ...detail, event: event.id, outcome } });
		await statementsIn(tx)`
			select audit_note(${auditNotesJson(act)}::text::jsonb, ${subject}, (select t.account_id from top_up t where t.id = ${subject}))`;
	}
	return outcome;
}

async function apply(tx: Transaction, event: Stripe.Event): Promise<Outcome> {
	switch (event.type) {
		case "checkout.session.completed":
		case "checkout.session.async_payment_succeeded":
			// The page may have saved a card. A job reads the card's details from Stripe later.
			await statementsIn(tx)`
				update card_setup set look_at = now() where id = ${event.data.object.id} and state = 'open'`;
			return paid(tx, event.data.object);
		case "checkout.session.async_payment_failed":
		case "checkout.session.expired":
			return closed(tx, event.data.object);
		case "payment_intent.succeeded":
			return handlePaidIntent(tx, event.data.object);
		case "payment_intent.payment_failed":
		case "payment_intent.requires_action":
		case "payment_intent.canceled":
			return handleChangedIntent(tx, event.data.object);
		case "charge.refunded":
			return refunded(tx, event.data.object);
		case "charge.dispute.created":
		case "charge.dispute.updated":
		case "charge.dispute.closed":
		case "charge.dispute.funds_withdrawn":
		case "charge.dispute.funds_reinstated":
			return disputed(tx, event.data.object);
		default:
			return { outcome: "ignored", subject: "", detail: {} };
	}
}

async function paid(tx: Transaction, session: Stripe.Checkout.Session): Promise<Outcome> {
	const paymentId = stripeId(session.payment_intent);
	const topUpId = session.client_reference_id ?? "";
	const facts = { checkout: session.id, payment: paymentId, amount: session.amount_total, currency: session.currency };
	const result = (outcome: string): Outcome => ({ outcome, subject: topUpId, detail: facts });
	if (session.payment_status !== "paid") return result("ignored");
	/** Records a payment that is not credited, with the reason. */
	const refuse = async (outcome: string): Promise<Outcome> => {
		await setFindingReason(tx, findingOf(session), outcome);
		return result(outcome);
	};
	if (paymentId === null) return refuse("refused: no payment is named");
	const [page] = await statementsIn(tx)<{ top_up_id: string }>`
		select top_up_id from stripe_checkout where id = ${session.id}`;
	if (page === undefined || page.top_up_id !== topUpId) return refuse("refused: this payment page is not ours");
	const refused = await creditPayment(tx, {
		paymentId,
		topUpId,
		amountCents: session.amount_total,
		currency: session.currency,
	});
	return refused === undefined ? result("applied") : refuse(refused);
}

/** Handles an expired page: it was not paid and can no longer be paid. */
async function closed(tx: Transaction, session: Stripe.Checkout.Session): Promise<Outcome> {
	const rows = await statementsIn(tx)<{ id: string }>`
		update top_up t set state = 'rejected', decided_at = clock_timestamp(), decided_by = 'stripe'
		from stripe_checkout c where c.id = ${session.id} and t.id = c.top_up_id and t.state = 'pending' returning t.id`;
	const subject = rows[0]?.id ?? session.client_reference_id ?? "";
	return { outcome: rows.length > 0 ? "applied" : "ignored", subject, detail: { checkout: session.id } };
}

/** Stripe's event contains the sum of all refunds, so the largest sum is the current one in any order of events. */
async function refunded(tx: Transaction, charge: Stripe.Charge): Promise<Outcome> {
	const { amount_refunded: cents, currency } = charge;
	const payment = stripeId(charge.payment_intent);
	const detail = { charge: charge.id, payment, refunded: cents, currency };
	const outcome = await wentBack(tx, { payment, cents, currency, detail, halts: "refunded" }, (id) => [
		sql`insert into stripe_payment as p (id, refunded_cents) values (${id}, ${cents}::bigint)
			on conflict (id) do update set refunded_cents = greatest(p.refunded_cents, excluded.refunded_cents)`,
	]);
	if (payment !== null && outcome.outcome === "applied") await settleRefunded(tx, payment, cents);
	return outcome;
}

interface WentBack {
	readonly payment: string | null;
	readonly cents: number;
	readonly currency: string;
	readonly detail: Outcome["detail"];
	/** Why the account's automatic top-ups stop; null if they continue. */
	readonly halts: "refunded" | "disputed" | null;
}

/** Stores refunds or disputes of a payment by `rows`, and books them if the books know the payment. */
async function wentBack(
	tx: Transaction,
	{ payment, cents, currency, detail, halts }: WentBack,
	rows: (payment: string) => SQL[],
): Promise<Outcome> {
	if (payment === null) return { outcome: "ignored", subject: "", detail };
	if (currency !== CURRENCY) return { outcome: "refused: another currency", subject: payment, detail };
	if (!isSum(cents)) return { outcome: NO_SUM, subject: payment, detail };
	const [known] = await statementsIn(tx)<{ top_up_id: string | null }>`
		select top_up_id from stripe_payment where id = ${payment}`;
	const topUp = known?.top_up_id == null ? undefined : await lockTopUp(tx, known.top_up_id);
	for (const row of rows(payment)) await tx.execute(row);
	if (topUp !== undefined) {
		await settlePayment(tx, payment, topUp);
		if (halts !== null) await haltAutomaticTopUps(tx, topUp.accountId, halts);
	} else await haltForRefunds(tx, payment);
	return { outcome: "applied", subject: topUp?.id ?? payment, detail };
}

/** Closes the finding of an uncredited payment after its complete refund, and rejects its top-up. */
async function settleRefunded(tx: Transaction, paymentId: string, refundedCents: number): Promise<void> {
	const [open] = await statementsIn(tx)<{ top_up_id: string | null }>`
		select top_up_id from stripe_finding
		where id = ${`paid:${paymentId}`} and resolved_at is null and amount_cents <= ${refundedCents}::bigint`;
	if (open === undefined) return;
	await resolveFinding(tx, `paid:${paymentId}`, "refunded");
	await statementsIn(tx)`
		update top_up set state = 'rejected', decided_at = clock_timestamp(), decided_by = 'stripe'
		where id = ${open.top_up_id} and state = 'pending'`;
}

async function disputed(tx: Transaction, dispute: Stripe.Dispute): Promise<Outcome> {
	const { amount: cents, currency, status } = dispute;
	const payment = stripeId(dispute.payment_intent);
	const detail = { dispute: dispute.id, payment, amount: cents, status };
	const state = disputeState(status);
	// An inquiry is not yet a dispute and takes no money, so it is ignored.
	if (state === undefined) return { outcome: "ignored", subject: payment ?? "", detail };
	return wentBack(tx, { payment, cents, currency, detail, halts: state === "won" ? null : "disputed" }, (id) => [
		sql`insert into stripe_payment (id) values (${id}) on conflict do nothing`,
		sql`insert into stripe_dispute as d (id, payment_id, amount_cents, state)
			values (${dispute.id}, ${id}, ${cents}::bigint, ${state})
			on conflict (id) do update set state = case when d.state = 'open' then excluded.state else d.state end`,
	]);
}

/** True for a plausible number of cents, because even a signed event could contain a negative or absurd amount. */
function isSum(cents: number): boolean {
	return Number.isSafeInteger(cents) && cents > 0 && cents <= centsRoundedDown(TOP_UP_NANO_USD_MAX);
}

export function disputeState(status: string): "open" | "won" | "lost" | undefined {
	if (status === "won" || status === "lost") return status;
	return status === "needs_response" || status === "under_review" ? "open" : undefined;
}

export function stripeId(value: string | { id: string } | null | undefined): string | null {
	return typeof value === "string" ? value : (value?.id ?? null);
}
