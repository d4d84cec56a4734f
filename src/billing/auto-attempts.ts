import Stripe from "stripe";
import { errorText } from "../base/error-record.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { sortAutoTopUps } from "./auto-top-ups.ts";
import { type StopReason, stopReasonOf } from "./stop-reasons.ts";
import { NANO_PER_CENT } from "./stripe-books.ts";
import { isRefused } from "./stripe-client.ts";
import { takeStripeEvent } from "./stripe-events.ts";
import { CURRENCY } from "./stripe-paid.ts";
import { newReference } from "./top-up-reference.ts";
import { createUnderWay } from "./under-way.ts";

/**
 * Automatic top-ups from their crossing to their end. A crossing is a row before anything is sent, and open rows are one an
 * account. A payment is made at Stripe without being charged, and written into the row; only the one that stands there is
 * ever charged, and Stripe charges a payment once. So a row is charged once, whoever dies or sleeps where, however late.
 */
export interface AutoAttempts {
	/** Begins attempts of accounts that were touched. */
	begin(): Promise<void>;
	/** Moves open attempts on. Resolves when those that it has begun with have ended; the next call needs not wait for that. */
	drive(): Promise<void>;
	/** Resolves when nothing is under way any more. */
	ended(): Promise<void>;
}

interface Attempt {
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
	/** Its owner has switched automatic top-ups on again, or off, instead of paying. */
	given_up: boolean;
}

/** Accounts of one turn that buy now; the others are first in the next one. */
const HELD_MAX = 100;
/** At Stripe at once, of one console. */
const DRIVEN_MAX = 20;
/** Longer than four calls of Stripe's take, which is the most that moving one on needs. */
const DRIVE_S = 180;
/** A payment that nobody could ask for in this time is not asked for any more: its account is looked at anew. */
const LATE_MINUTES = 60;
/** Cards are decided about within seconds, in some countries a day after their people were told. */
const UNDECIDED_HOURS = 48;
/** Under the same key, so that an answer that was lost comes again. A key may have an error for its answer for a day. */
const SAME_KEY_LOOKS = 3;
const UNDECIDED = "a saved card may be charged: for two days Stripe has not said whether it is";
/** Until Stripe is asked again what became of it, by how often it was asked. */
const WAITS_S = [5, 15, 60, 300, 900, 3_600];

export function createAutoAttempts(deps: {
	statements: Statements;
	tx: Transactional;
	stripe: Stripe;
	log: Log;
}): AutoAttempts {
	const { statements, tx, stripe, log } = deps;
	const underWay = createUnderWay(DRIVEN_MAX);

	async function move(attempt: Attempt): Promise<void> {
		if (attempt.state === "needs_authentication") return settleWaiting(attempt);
		if (attempt.payment_id !== null) return apply(attempt, await stripe.paymentIntents.retrieve(attempt.payment_id));
		if (attempt.late) return stop(attempt, "ended", "unanswered");
		let made: Stripe.PaymentIntent;
		try {
			made = await make(attempt);
		} catch (error) {
			if (!isRefused(error)) throw error;
			return stop(attempt, "declined", stopReasonOf(error.code, error.decline_code));
		}
		const paymentId = await keep(attempt, made.id);
		// Another console has made one, which counts, or the attempt is over: this one is left as it is, never charged.
		if (paymentId === made.id) await apply({ ...attempt, payment_id: made.id }, made);
	}

	/** Makes the payment. Nothing is charged by that, so one that was made twice does no harm. */
	function make(attempt: Attempt): Promise<Stripe.PaymentIntent> {
		return stripe.paymentIntents.create(
			{
				amount: Number(attempt.amount) / NANO_PER_CENT,
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
	async function keep({ id }: Attempt, paymentId: string): Promise<string | undefined> {
		const [row] = await statements<{ payment_id: string }>`
			update auto_top_up_attempt set payment_id = coalesce(payment_id, ${paymentId}), state = 'sent', sent_at = coalesce(sent_at, now())
			where id = ${id} and state in ('begun', 'sent', 'unknown') returning payment_id`;
		return row?.payment_id;
	}

	/** What follows from the payment as it is. Called again with what it has become. */
	async function apply(attempt: Attempt, intent: Stripe.PaymentIntent): Promise<void> {
		if (intent.metadata?.attempt !== attempt.id) throw new Error("a payment of another attempt");
		const failure = intent.last_payment_error;
		switch (intent.status) {
			case "succeeded":
				return takePaid(intent);
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

	/** Whether it would begin just so now. What was switched off, changed or suspended since is not charged for. */
	async function isWanted({ account_id: accountId, amount, payment_method_id: card }: Attempt): Promise<boolean> {
		const rows = await statements`
			select 1 from auto_top_up s join saved_card c on c.account_id = s.account_id join account a on a.id = s.account_id
			where s.account_id = ${accountId} and s.state = 'on' and s.amount_nano_usd = ${amount}::bigint
				and c.payment_method_id = ${card} and a.state = 'active'`;
		return rows.length > 0;
	}

	async function charge(attempt: Attempt, intent: Stripe.PaymentIntent): Promise<void> {
		if (!(await isWanted(attempt))) return giveUp(attempt, intent, "changed");
		try {
			await apply(attempt, await stripe.paymentIntents.confirm(intent.id, { off_session: true }));
		} catch (error) {
			const isCard = error instanceof Stripe.errors.StripeCardError;
			if (!isCard && !isRefused(error)) throw error;
			const now = await stripe.paymentIntents.retrieve(intent.id);
			// Refused as it stands, or charged by somebody else meanwhile.
			const isOver = now.status === "succeeded" || now.status === "processing" || now.status === "canceled";
			if (isOver) return apply(attempt, now);
			await giveUp(attempt, now, stopReasonOf(error.code, error.decline_code));
		}
	}

	/** Whatever its owner does next, this payment cannot be made any more. Why is kept: Stripe may forget it with that. */
	async function giveUp(attempt: Attempt, intent: Stripe.PaymentIntent, reason: StopReason): Promise<void> {
		await statements`
			update auto_top_up_attempt set reason = ${reason} where id = ${attempt.id} and state in ('begun', 'sent', 'unknown')`;
		await apply({ ...attempt, reason }, await stripe.paymentIntents.cancel(intent.id));
	}

	/** By the road of its event, which may come before or after this or never. */
	async function takePaid(intent: Stripe.PaymentIntent): Promise<void> {
		const event = { id: newId("reply"), type: "payment_intent.succeeded", data: { object: intent } };
		const outcome = await takeStripeEvent(tx, event as unknown as Stripe.Event);
		const fields = { attempt: intent.metadata?.attempt, payment: intent.id, outcome };
		if (outcome === "applied") log.info("an automatic top-up was paid", fields);
		else log.warn("an automatic top-up was paid and gave no credit", fields);
	}

	async function stop(
		attempt: Attempt,
		state: "declined" | "needs_authentication" | "ended",
		reason: StopReason,
	): Promise<void> {
		// A card that was replaced says nothing about the one that is saved now.
		if (state === "declined" && !(await isWanted(attempt))) return stop(attempt, "ended", "changed");
		await statements`select auto_top_up_stop(${attempt.id}, ${state}, ${reason})`;
		log.info("an automatic top-up was not paid", { attempt: attempt.id, state, reason });
	}

	/** Its owner pays on a page, cancels it, or does neither; or he has given up paying it by what he set since. */
	async function settleWaiting(attempt: Attempt): Promise<void> {
		if (attempt.given_up) {
			const [page] = await statements<{ id: string }>`
				select id from stripe_checkout where top_up_id = ${attempt.top_up_id}`;
			// Closed first: a page that may have been paid is left to say so.
			if (page !== undefined) await stripe.checkout.sessions.expire(page.id);
			await statements`
				update top_up set state = 'rejected', decided_at = clock_timestamp(), decided_by = 'stripe'
				where id = ${attempt.top_up_id} and state = 'pending'`;
		}
		await statements`select auto_top_up_decided(${attempt.id})`;
	}

	/** Never rejects: what is not known is asked again. */
	async function moveAndNote(attempt: Attempt): Promise<void> {
		try {
			await move(attempt).catch(async (error) => {
				log.warn("what became of an automatic top-up is not known; it is asked again", {
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
			log.warn("an automatic top-up could not be written down; it is asked again", { attempt: attempt.id, error });
		}
	}

	return {
		async begin() {
			await sortAutoTopUps(statements);
			const held = await statements<{ account_id: string }>`
				select account_id from auto_top_up where state = 'on' and look_at <= now() order by look_at limit ${HELD_MAX}`;
			for (const { account_id: accountId } of held) {
				await statements`
					select auto_top_up_begin(${accountId}, ${newId("att")}, ${newId("top")}, ${newReference()})`;
			}
		},

		async drive() {
			const places = underWay.places();
			if (places <= 0) return;
			const rows = await statements<Attempt>`
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
					not exists (select 1 from auto_top_up s where s.account_id = a.account_id and s.state = 'needs_owner') as given_up`;
			await Promise.all(rows.map((attempt) => underWay.begin(() => moveAndNote(attempt))));
		},

		ended: underWay.ended,
	};
}

function reasonOf(failure: Stripe.PaymentIntent.LastPaymentError | null): StopReason {
	return stopReasonOf(failure?.code, failure?.decline_code);
}
