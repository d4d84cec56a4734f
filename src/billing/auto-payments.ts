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

/** An open attempt to buy credit with a saved card, as its row says. */
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
	/** So old that what it was for may be over: it is not charged any more. */
	late: boolean;
	/** So old that operators and its people hear of it. */
	undecided: boolean;
	/** Its owner has switched automatic top-ups on again, or off, instead of paying; and nothing is decided of it yet. */
	given_up: boolean;
}

/** Under the same key, so that an answer that was lost comes again. A key may have an error for its answer for a day. */
const SAME_KEY_LOOKS = 3;

/** An answer that says so is no reason to ask the same again at once, and again: that is done when it is looked at next. */
const AS_BEFORE = "Stripe has done what it was asked, and the payment is as before";

/** The payment of an attempt at Stripe: made, written down, charged once or given up. */
export function createAutoPayments(deps: { statements: Statements; tx: Transactional; stripe: Stripe; log: Log }) {
	const { statements, tx, stripe, log } = deps;

	/** One step on, whatever is known of it. Rejects where Stripe does not say; then it is asked again. */
	async function move(attempt: Attempt): Promise<void> {
		if (attempt.payment_id !== null) return apply(attempt, await stripe.paymentIntents.retrieve(attempt.payment_id));
		if (attempt.late) return stop(attempt, "ended", "unanswered");
		let made: Stripe.PaymentIntent;
		try {
			made = await make(stripe, attempt);
		} catch (error) {
			if (!isRefused(error)) throw error;
			return stop(attempt, "declined", stopReasonOf(error.code, error.decline_code));
		}
		const paymentId = await keep(statements, attempt, made.id);
		// Another console has made one, which counts, or the attempt is over: this one is left as it is, never charged.
		if (paymentId === made.id) await apply({ ...attempt, payment_id: made.id }, made);
	}

	/** What follows from the payment as it is. Called again with what it has become. */
	async function apply(attempt: Attempt, intent: Stripe.PaymentIntent): Promise<void> {
		if (intent.metadata?.attempt !== attempt.id) throw new Error("a payment of another attempt");
		const failure = intent.last_payment_error;
		switch (intent.status) {
			case "succeeded":
				return takePaid({ tx, log }, intent);
			case "processing":
				return;
			case "canceled": {
				const reason = attempt.reason ?? reasonOf(failure);
				if (reason === "unanswered" || reason === "changed") return stop(attempt, "ended", reason);
				return stop(attempt, reason === "authentication" ? "needs_authentication" : "declined", reason);
			}
			case "requires_action":
				return giveUp(attempt, intent, "authentication");
			default:
				if (attempt.reason !== null || failure !== null)
					return giveUp(attempt, intent, attempt.reason ?? reasonOf(failure));
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
			// Refused as it stands, or charged by somebody else meanwhile.
			if (isOver(now)) return apply(attempt, now);
			await giveUp(attempt, now, stopReasonOf(error.code, error.decline_code));
		}
	}

	/** Whatever its owner does next, this payment cannot be made any more. Why is kept: Stripe may forget it with that. */
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
		// A card that was replaced says nothing about the one that is saved now.
		if (state === "declined" && !(await isWanted(statements, attempt))) return stop(attempt, "ended", "changed");
		await statements`select auto_top_up_stop(${attempt.id}, ${state}, ${reason})`;
		log.info("an automatic top-up was not paid", { attempt: attempt.id, state, reason });
	}

	return { move };
}

/** Nothing is to be done with it any more. */
function isOver({ status }: Stripe.PaymentIntent): boolean {
	return status === "succeeded" || status === "processing" || status === "canceled";
}

/** By the road of its event, which may come before or after this or never. */
async function takePaid({ tx, log }: { tx: Transactional; log: Log }, intent: Stripe.PaymentIntent): Promise<void> {
	const event = { id: newId("reply"), type: "payment_intent.succeeded", data: { object: intent } };
	const outcome = await takeStripeEvent(tx, event as unknown as Stripe.Event);
	const fields = { attempt: intent.metadata?.attempt, payment: intent.id, outcome };
	if (outcome === "applied") log.info("an automatic top-up was paid", fields);
	else log.warn("an automatic top-up was paid and gave no credit", fields);
}

/** Makes the payment. Nothing is charged by that, so one that was made twice does no harm. */
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

/** Writes the one payment down that may be charged. Undefined if the attempt has ended meanwhile. */
async function keep(statements: Statements, { id }: Attempt, paymentId: string): Promise<string | undefined> {
	const [row] = await statements<{ payment_id: string }>`
		update auto_top_up_attempt set payment_id = coalesce(payment_id, ${paymentId}), state = 'sent', sent_at = coalesce(sent_at, now())
		where id = ${id} and state in ('begun', 'sent', 'unknown') returning payment_id`;
	return row?.payment_id;
}

/** Whether it would begin just so now. What was switched off, changed or suspended since is not charged for. */
async function isWanted(statements: Statements, attempt: Attempt): Promise<boolean> {
	const { account_id: accountId, amount, payment_method_id: card } = attempt;
	const rows = await statements`
		select 1 from auto_top_up s join saved_card c on c.account_id = s.account_id join account a on a.id = s.account_id
		where s.account_id = ${accountId} and s.state = 'on' and s.amount_nano_usd = ${amount}::bigint
			and c.payment_method_id = ${card} and a.state = 'active'`;
	return rows.length > 0;
}

function reasonOf(failure: Stripe.PaymentIntent.LastPaymentError | null): StopReason {
	return stopReasonOf(failure?.code, failure?.decline_code);
}
