import Stripe from "stripe";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { centsOf } from "../money/cents.ts";
import { nanoUsdOfColumn } from "../money/nano-usd.ts";
import { type StopReason, stopReasonOf } from "./stop-reasons.ts";
import { CURRENCY } from "./stripe-books.ts";
import { isRefused } from "./stripe-client.ts";
import { takeStripeEvent } from "./stripe-events.ts";

/** An open attempt to buy credit with a saved card, as stored. */
export interface Attempt {
	id: string;
	account_id: string;
	top_up_id: string;
	amount: string;
	customer_id: string;
	payment_method_id: string;
	state: "begun" | "sent" | "unknown" | "needs_authentication";
	reason: StopReason | null;
	payment_id: string | null;
	looks: number;
	/** Too old: its reason may be over, so it is not charged. */
	late: boolean;
	/** So old that operators and the account's people are notified. */
	undecided: boolean;
	/** The owner changed the automatic top-up instead of paying, and the payment is undecided. */
	given_up: boolean;
}

/** The same Idempotency-Key, so that a lost answer is repeated. A key may answer with an error for a day. */
const SAME_KEY_LOOKS = 3;

/** Such an answer is no reason to query again at once; the next scheduled look does. */
const AS_BEFORE = "Stripe has done what it was asked, and the payment is as before";

/** The payment of an attempt at Stripe: created, stored, confirmed once or cancelled. */
export function createAutoPayments(deps: { statements: Statements; tx: Transactional; stripe: Stripe; log: Log }) {
	const { statements, tx, stripe, log } = deps;

	/** Advances the attempt by one step. Rejects if Stripe's answer does not tell; then it is queried again. */
	async function move(attempt: Attempt): Promise<void> {
		if (attempt.payment_id !== null) return apply(attempt, await stripe.paymentIntents.retrieve(attempt.payment_id));
		if (attempt.late) return stop(attempt, "ended", "unanswered");
		let made: Stripe.PaymentIntent;
		try {
			made = await make(stripe, attempt);
		} catch (error) {
			if (!isRefused(error)) throw error;
			return stop(attempt, "declined", stopReasonOf(error));
		}
		const paymentId = await keep(statements, attempt, made.id);
		// Another console created the payment that counts, or the attempt is over: this one is never confirmed.
		if (paymentId === made.id) await apply({ ...attempt, payment_id: made.id }, made);
	}

	/** Applies the payment's state, and again after each change. */
	async function apply(attempt: Attempt, intent: Stripe.PaymentIntent): Promise<void> {
		if (intent.metadata?.attempt !== attempt.id) throw new Error("a payment of another attempt");
		const failure = intent.last_payment_error;
		switch (intent.status) {
			case "succeeded":
				return takePaid({ tx, log }, intent);
			case "processing":
				return;
			case "canceled": {
				const reason = attempt.reason ?? stopReasonOf(failure);
				if (reason === "unanswered" || reason === "changed") return stop(attempt, "ended", reason);
				return stop(attempt, reason === "authentication" ? "needs_authentication" : "declined", reason);
			}
			case "requires_action":
				return giveUp(attempt, intent, "authentication");
			default:
				if (attempt.reason !== null || failure !== null)
					return giveUp(attempt, intent, attempt.reason ?? stopReasonOf(failure));
				return attempt.late ? giveUp(attempt, intent, "unanswered") : charge(attempt, intent);
		}
	}

	async function charge(attempt: Attempt, intent: Stripe.PaymentIntent): Promise<void> {
		if (!(await isWanted(statements, attempt))) return giveUp(attempt, intent, "changed");
		try {
			const charged = await stripe.paymentIntents.confirm(intent.id, { off_session: true });
			const isDecided = isOver(charged) || charged.status === "requires_action" || charged.last_payment_error !== null;
			if (!isDecided) throw new Error(AS_BEFORE);
			await apply(attempt, charged);
		} catch (error) {
			const isCard = error instanceof Stripe.errors.StripeCardError;
			if (!isCard && !isRefused(error)) throw error;
			const now = await stripe.paymentIntents.retrieve(intent.id);
			// Declined as it is, or confirmed by another process.
			if (isOver(now)) return apply(attempt, now);
			await giveUp(attempt, now, stopReasonOf(error));
		}
	}

	/** The payment can never be confirmed now. The reason is stored, since Stripe may forget it. */
	async function giveUp(attempt: Attempt, intent: Stripe.PaymentIntent, reason: StopReason): Promise<void> {
		await statements`
			update auto_top_up_attempt set reason = ${reason} where id = ${attempt.id} and state in ('begun', 'sent', 'unknown')`;
		const left = await stripe.paymentIntents.cancel(intent.id);
		if (!isOver(left)) throw new Error(AS_BEFORE);
		await apply({ ...attempt, reason }, left);
	}

	async function stop(
		attempt: Attempt,
		state: "declined" | "needs_authentication" | "ended",
		reason: StopReason,
	): Promise<void> {
		// A replaced card says nothing about the present one.
		if (state === "declined" && !(await isWanted(statements, attempt))) return stop(attempt, "ended", "changed");
		await statements`select auto_top_up_stop(${attempt.id}, ${state}, ${reason})`;
		log.info("an automatic top-up was not paid", { attempt: attempt.id, state, reason });
	}

	return { move };
}

function isOver({ status }: Stripe.PaymentIntent): boolean {
	return status === "succeeded" || status === "processing" || status === "canceled";
}

/** Stripe's event books it, before or after this, or never. */
async function takePaid({ tx, log }: { tx: Transactional; log: Log }, intent: Stripe.PaymentIntent): Promise<void> {
	const event = { id: newId("reply"), type: "payment_intent.succeeded", data: { object: intent } } as unknown;
	const outcome = await takeStripeEvent(tx, event as Stripe.Event);
	const fields = { attempt: intent.metadata?.attempt, payment: intent.id, outcome };
	if (outcome === "applied") log.info("an automatic top-up was paid", fields);
	else log.warn("an automatic top-up was paid and gave no credit", fields);
}

/** Creates the payment. Creating charges nothing, so a second one does no harm. */
function make(stripe: Stripe, attempt: Attempt): Promise<Stripe.PaymentIntent> {
	return stripe.paymentIntents.create(
		{
			amount: centsOf(nanoUsdOfColumn(attempt.amount)),
			currency: CURRENCY,
			customer: attempt.customer_id,
			payment_method: attempt.payment_method_id,
			allowed_payment_method_types: ["card"],
			metadata: { top_up: attempt.top_up_id, account: attempt.account_id, attempt: attempt.id },
		},
		{ idempotencyKey: attempt.looks <= SAME_KEY_LOOKS ? attempt.id : `${attempt.id}-${attempt.looks}` },
	);
}

/** Stores the id of the one payment that may be confirmed. Returns undefined if the attempt has ended. */
async function keep(statements: Statements, { id }: Attempt, paymentId: string): Promise<string | undefined> {
	const [row] = await statements<{ payment_id: string }>`
		update auto_top_up_attempt set payment_id = coalesce(payment_id, ${paymentId}), state = 'sent', sent_at = coalesce(sent_at, now())
		where id = ${id} and state in ('begun', 'sent', 'unknown') returning payment_id`;
	return row?.payment_id;
}

/** Whether the attempt would begin again now. A setting that was switched off, changed or suspended is not charged. */
async function isWanted(statements: Statements, attempt: Attempt): Promise<boolean> {
	const { account_id: accountId, amount, payment_method_id: card } = attempt;
	const rows = await statements`
		select 1 from auto_top_up s join saved_card c on c.account_id = s.account_id join account a on a.id = s.account_id
		where s.account_id = ${accountId} and s.state = 'on' and s.amount_nano_usd = ${amount}::bigint
			and c.payment_method_id = ${card} and a.state = 'active'`;
	return rows.length > 0;
}
