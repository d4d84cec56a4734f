import Stripe from "stripe";
import { errorText } from "../base/error-record.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { DatabaseBusy, isDatabaseDown } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { centsRoundedDown, nanoUsdOfColumn } from "../money/nano-usd.ts";
import { scheduleAutoTopUpChecks } from "./auto-top-ups.ts";
import { createCallSlots } from "./call-slots.ts";
import { closePaymentPage } from "./payment-pages.ts";
import { type AutoTopUpStopReason, stopReasonForFailure } from "./stop-reasons.ts";
import { CURRENCY } from "./stripe-books.ts";
import { isStripeRefusal } from "./stripe-client.ts";
import { applyStripeEvent } from "./stripe-events.ts";
import { newPaymentReference } from "./top-ups.ts";

/** Maximum number of accounts per round. The other accounts come first in the next round. */
const HELD_MAX = 100;
/** Maximum number of concurrent calls to Stripe per console. */
const DRIVEN_MAX = 20;
/** Seconds for which a console claims an attempt: longer than four calls to Stripe, the most in one step. */
const DRIVE_S = 180;
/** Minutes after which an attempt that has not reached Stripe is dropped and the account checked again. */
const LATE_MINUTES = 60;
/** Hours after which an undecided payment is reported. Usually seconds suffice, in some countries a day. */
const UNDECIDED_HOURS = 48;
const UNDECIDED = "a saved card may be charged: for two days Stripe has not said whether it is";
/** Seconds before Stripe is queried again, by the number of earlier queries. */
const WAITS_S = [5, 15, 60, 300, 900, 3_600];

/**
 * Runs automatic top-ups. When credit falls below the threshold, a row (an attempt) is inserted before anything is
 * sent; an account has at most one open attempt. The payment is created at Stripe without confirmation, and its id is
 * stored in the row. Only that payment is ever confirmed, and Stripe confirms a payment once. So each attempt is
 * charged at most once, despite crashes and delays.
 */
export function createAutoAttempts(deps: { statements: Statements; tx: Transactional; stripe: Stripe; log: Log }) {
	const { statements, stripe, log } = deps;
	const payments = createAutoPayments(deps);
	const underWay = createCallSlots(DRIVEN_MAX);

	/** Closes the page on which the owner can pay the attempt. False if there is none. */
	async function closePageOf(attempt: OpenAttempt): Promise<boolean> {
		const [page] = await statements<{ id: string }>`
			select id from stripe_checkout where top_up_id = ${attempt.top_up_id}`;
		if (page !== undefined) await closePaymentPage(stripe, page.id);
		return page !== undefined;
	}

	/** Ends an attempt that waits for its owner, if the payment was cancelled or the setting was changed instead. */
	async function settleWaiting(attempt: OpenAttempt): Promise<void> {
		if (attempt.given_up) {
			// Closes the page first. If the page may already have been paid, Stripe's event decides the attempt.
			const hadPage = await closePageOf(attempt);
			await statements`
				update top_up set state = 'rejected', decided_at = clock_timestamp(), decided_by = 'stripe'
				where id = ${attempt.top_up_id} and state = 'pending'`;
			// Looks for the page again, because it may have been opened since the first look.
			if (!hadPage) await closePageOf(attempt);
		}
		await statements`select auto_top_up_decided(${attempt.id})`;
	}

	/** Advances the attempt by one step and records the outcome. Never rejects: an unknown outcome is queried later. */
	async function moveAndNote(attempt: OpenAttempt): Promise<void> {
		try {
			const isWaiting = attempt.state === "needs_authentication";
			await (isWaiting ? settleWaiting(attempt) : payments.move(attempt)).catch(async (error) => {
				log.warn("the outcome of an automatic top-up is unknown; Stripe is queried again", {
					attempt: attempt.id,
					problem: errorText(error),
				});
				await statements`
					update auto_top_up_attempt set state = 'unknown' where id = ${attempt.id} and state = 'sent'`;
			});
			if (attempt.undecided && attempt.state !== "needs_authentication")
				await statements`select auto_top_up_undecided(${attempt.id}, ${UNDECIDED})`;
			await statements`
				update auto_top_up_attempt set look_at = now() + make_interval(secs => (${JSON.stringify(WAITS_S)}::text::jsonb
					-> greatest(least(looks, ${WAITS_S.length}::integer), 1) - 1)::integer)
				where id = ${attempt.id} and state in ('begun', 'sent', 'unknown', 'needs_authentication')`;
		} catch (error) {
			log.warn("an automatic top-up could not be stored; Stripe is queried again", { attempt: attempt.id, error });
		}
	}

	return {
		/** Starts attempts for accounts whose credit fell below their threshold. */
		async begin(): Promise<void> {
			await scheduleAutoTopUpChecks(statements);
			const held = await statements<{ account_id: string }>`
				select account_id from auto_top_up where state = 'on' and look_at <= now() order by look_at limit ${HELD_MAX}`;
			for (const { account_id: accountId } of held) {
				try {
					await statements`
						select auto_top_up_begin(${accountId}, ${newId("att")}, ${newId("top")}, ${newPaymentReference()})`;
				} catch (error) {
					// The account's row is locked and stays first in the order, so the loop goes on with the other accounts.
					if (isDatabaseDown(error) && !(error instanceof DatabaseBusy)) throw error;
					log.warn("an automatic top-up could not be begun; it is tried again", { account: accountId, error });
				}
			}
		},

		/** Advances open attempts. Resolves when the steps that it started are done; the next call need not wait. */
		drive(): Promise<void> {
			const due = (places: number) => statements<OpenAttempt>`
				with due as (
					select id from auto_top_up_attempt where state in ('begun', 'sent', 'unknown', 'needs_authentication') and look_at <= now()
					order by look_at limit ${places} for update skip locked
				)
				update auto_top_up_attempt a set look_at = now() + make_interval(secs => ${DRIVE_S}::integer), looks = a.looks + 1
				from due d where a.id = d.id
				returning a.id, a.account_id, a.top_up_id, a.amount_nano_usd as amount, a.customer_id, a.payment_method_id, a.state,
					a.reason, a.payment_id, a.looks,
					a.begun_at < now() - make_interval(mins => ${LATE_MINUTES}::integer) as late,
					a.begun_at < now() - make_interval(hours => ${UNDECIDED_HOURS}::integer) as undecided,
					not exists (select 1 from auto_top_up s where s.account_id = a.account_id and s.state = 'needs_owner')
						and exists (select 1 from top_up t where t.id = a.top_up_id and t.state = 'pending') as given_up`;
			return underWay.begin(due, moveAndNote);
		},

		ended: underWay.ended,
	};
}

/** An open automatic top-up as its row stores it. */
export interface OpenAttempt {
	id: string;
	account_id: string;
	top_up_id: string;
	amount: string;
	customer_id: string;
	payment_method_id: string;
	state: "begun" | "sent" | "unknown" | "needs_authentication";
	reason: AutoTopUpStopReason | null;
	payment_id: string | null;
	looks: number;
	/** True if the attempt is too old to be charged, because the reason for it may no longer exist. */
	late: boolean;
	/** True if the attempt is so old that operators and the account's members get notices. */
	undecided: boolean;
	/** True if the owner changed the setting instead of confirming the payment. The top-up is still pending then. */
	given_up: boolean;
}

/** Maximum tries with one Idempotency-Key, which returns a lost response. Stripe may repeat an error, for a day. */
const SAME_KEY_LOOKS = 3;

/** Message of an error after which the payment is unchanged and is queried again as scheduled. */
const AS_BEFORE = "Stripe has done what it was asked, and the payment is as before";

/** Handles an attempt's payment at Stripe: creates it, stores its id, then confirms it once or cancels it. */
function createAutoPayments(deps: { statements: Statements; tx: Transactional; stripe: Stripe; log: Log }) {
	const { statements, tx, stripe, log } = deps;

	/** Advances the attempt by one step. Rejects if Stripe's response leaves the outcome unknown. */
	async function move(attempt: OpenAttempt): Promise<void> {
		if (attempt.payment_id !== null) return apply(attempt, await stripe.paymentIntents.retrieve(attempt.payment_id));
		if (attempt.late) return stop(attempt, "ended", "unanswered");
		let made: Stripe.PaymentIntent;
		try {
			made = await make(stripe, attempt);
		} catch (error) {
			if (!isStripeRefusal(error)) throw error;
			return stop(attempt, "declined", stopReasonForFailure(error));
		}
		const paymentId = await keep(statements, attempt, made.id);
		// Ignores this payment if another console has stored its own, or the attempt has ended: it is never confirmed.
		if (paymentId === made.id) await apply({ ...attempt, payment_id: made.id }, made);
	}

	/** Acts on the payment's state, and again if acting changed the state. */
	async function apply(attempt: OpenAttempt, intent: Stripe.PaymentIntent): Promise<void> {
		if (intent.metadata?.attempt !== attempt.id) throw new Error("a payment of another attempt");
		const failure = intent.last_payment_error;
		switch (intent.status) {
			case "succeeded":
				return takePaid({ tx, log }, intent);
			case "processing":
				return;
			case "canceled": {
				const reason = attempt.reason ?? stopReasonForFailure(failure);
				if (reason === "unanswered" || reason === "changed") return stop(attempt, "ended", reason);
				return stop(attempt, reason === "authentication" ? "needs_authentication" : "declined", reason);
			}
			case "requires_action":
				return giveUp(attempt, intent, "authentication");
			default:
				if (attempt.reason !== null || failure !== null)
					return giveUp(attempt, intent, attempt.reason ?? stopReasonForFailure(failure));
				return attempt.late ? giveUp(attempt, intent, "unanswered") : charge(attempt, intent);
		}
	}

	async function charge(attempt: OpenAttempt, intent: Stripe.PaymentIntent): Promise<void> {
		if (!(await isWanted(statements, attempt))) return giveUp(attempt, intent, "changed");
		try {
			const charged = await stripe.paymentIntents.confirm(intent.id, { off_session: true });
			const isDecided = isOver(charged) || charged.status === "requires_action" || charged.last_payment_error !== null;
			if (!isDecided) throw new Error(AS_BEFORE);
			await apply(attempt, charged);
		} catch (error) {
			const isCard = error instanceof Stripe.errors.StripeCardError;
			if (!isCard && !isStripeRefusal(error)) throw error;
			const now = await stripe.paymentIntents.retrieve(intent.id);
			// The payment was declined before, or another process has confirmed it.
			if (isOver(now)) return apply(attempt, now);
			await giveUp(attempt, now, stopReasonForFailure(error));
		}
	}

	/** Cancels the payment, which can then never be confirmed. Stores the reason here, because Stripe may forget it. */
	async function giveUp(
		attempt: OpenAttempt,
		intent: Stripe.PaymentIntent,
		reason: AutoTopUpStopReason,
	): Promise<void> {
		await statements`
			update auto_top_up_attempt set reason = ${reason} where id = ${attempt.id} and state in ('begun', 'sent', 'unknown')`;
		const left = await stripe.paymentIntents.cancel(intent.id);
		if (!isOver(left)) throw new Error(AS_BEFORE);
		await apply({ ...attempt, reason }, left);
	}

	async function stop(
		attempt: OpenAttempt,
		state: "declined" | "needs_authentication" | "ended",
		reason: AutoTopUpStopReason,
	) {
		// A card that was declined and has been replaced since does not stop automatic top-ups.
		if (state === "declined" && !(await isWanted(statements, attempt))) return stop(attempt, "ended", "changed");
		await statements`select auto_top_up_stop(${attempt.id}, ${state}, ${reason})`;
		log.info("an automatic top-up was not paid", { attempt: attempt.id, state, reason });
	}

	return { move };
}

function isOver({ status }: Stripe.PaymentIntent): boolean {
	return status === "succeeded" || status === "processing" || status === "canceled";
}

/** Credits a paid payment without waiting for Stripe's event, which may arrive before, after or never. */
async function takePaid({ tx, log }: { tx: Transactional; log: Log }, intent: Stripe.PaymentIntent): Promise<void> {
	const event = { id: newId("reply"), type: "payment_intent.succeeded", data: { object: intent } } as unknown;
	const outcome = await applyStripeEvent(tx, event as Stripe.Event);
	const fields = { attempt: intent.metadata?.attempt, payment: intent.id, outcome };
	if (outcome === "applied") log.info("an automatic top-up was paid", fields);
	else log.warn("an automatic top-up was paid and gave no credit", fields);
}

/** Creates the payment at Stripe. Charges nothing yet, so a superfluous payment does no harm. */
function make(stripe: Stripe, attempt: OpenAttempt): Promise<Stripe.PaymentIntent> {
	return stripe.paymentIntents.create(
		{
			amount: centsRoundedDown(nanoUsdOfColumn(attempt.amount)),
			currency: CURRENCY,
			customer: attempt.customer_id,
			payment_method: attempt.payment_method_id,
			allowed_payment_method_types: ["card"],
			metadata: { top_up: attempt.top_up_id, account: attempt.account_id, attempt: attempt.id },
		},
		{ idempotencyKey: attempt.looks <= SAME_KEY_LOOKS ? attempt.id : `${attempt.id}-${attempt.looks}` },
	);
}

/** Stores the id of the attempt's only confirmable payment and returns it. Undefined if the attempt has ended. */
async function keep(statements: Statements, { id }: OpenAttempt, paymentId: string): Promise<string | undefined> {
	const [row] = await statements<{ payment_id: string }>`
		update auto_top_up_attempt set payment_id = coalesce(payment_id, ${paymentId}), state = 'sent', sent_at = coalesce(sent_at, now())
		where id = ${id} and state in ('begun', 'sent', 'unknown') returning payment_id`;
	return row?.payment_id;
}

/** True if the account still wants the top-up: its setting is on and unchanged, and the account is active. */
async function isWanted(statements: Statements, attempt: OpenAttempt): Promise<boolean> {
	const { account_id: accountId, amount, payment_method_id: card } = attempt;
	const rows = await statements`
		select 1 from auto_top_up s join saved_card c on c.account_id = s.account_id join account a on a.id = s.account_id
		where s.account_id = ${accountId} and s.state = 'on' and s.amount_nano_usd = ${amount}::bigint
			and c.payment_method_id = ${card} and a.state = 'active'`;
	return rows.length > 0;
}
