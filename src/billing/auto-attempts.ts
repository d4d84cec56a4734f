import type Stripe from "stripe";
import { errorText } from "../base/error-record.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { DatabaseBusy, isDatabaseAway } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { type Attempt, createAutoPayments } from "./auto-payments.ts";
import { sortAutoTopUps } from "./auto-top-ups.ts";
import { closePage } from "./payment-pages.ts";
import { newReference } from "./top-up-reference.ts";
import { createUnderWay } from "./under-way.ts";

/** Accounts of one round; the others come first in the next. */
const HELD_MAX = 100;
/** Concurrent calls to Stripe of one console. */
const DRIVEN_MAX = 20;
/** More than four calls to Stripe take, the most that one advance needs. */
const DRIVE_S = 180;
/** A payment that could not be requested within this time is dropped, and the account is checked again. */
const LATE_MINUTES = 60;
/** Most cards are decided within seconds; in some countries a day after the customer was notified. */
const UNDECIDED_HOURS = 48;
const UNDECIDED = "a saved card may be charged: for two days Stripe has not said whether it is";
/** Delay before Stripe is queried again, by the number of queries so far. */
const WAITS_S = [5, 15, 60, 300, 900, 3_600];

/**
 * Runs automatic top-ups. When credit falls below the threshold, a row is inserted before anything is sent; an account
 * has at most one open row. The payment is created at Stripe unconfirmed and its id stored in the row. Only the stored
 * payment is ever confirmed, and Stripe confirms a payment once. So each row is charged at most once, through any crash
 * or delay.
 */
export function createAutoAttempts(deps: { statements: Statements; tx: Transactional; stripe: Stripe; log: Log }) {
	const { statements, stripe, log } = deps;
	const payments = createAutoPayments(deps);
	const underWay = createUnderWay(DRIVEN_MAX);

	/** Returns false if the account has no open attempt. */
	async function closePageOf(attempt: Attempt): Promise<boolean> {
		const [page] = await statements<{ id: string }>`
			select id from stripe_checkout where top_up_id = ${attempt.top_up_id}`;
		if (page !== undefined) await closePage(stripe, page.id);
		return page !== undefined;
	}

	/** The owner confirms the payment on a page, cancels it, does neither, or changed the setting instead. */
	async function settleWaiting(attempt: Attempt): Promise<void> {
		if (attempt.given_up) {
			// The page is closed first; a page that may have been paid is left to its own event.
			const hadPage = await closePageOf(attempt);
			await statements`
				update top_up set state = 'rejected', decided_at = clock_timestamp(), decided_by = 'stripe'
				where id = ${attempt.top_up_id} and state = 'pending'`;
			// A page that is being opened at the same moment is closed by the later of the two.
			if (!hadPage) await closePageOf(attempt);
		}
		await statements`select auto_top_up_decided(${attempt.id})`;
	}

	/** Never rejects: an unknown outcome is queried again. */
	async function moveAndNote(attempt: Attempt): Promise<void> {
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
		/** Begins attempts for accounts whose credit changed. */
		async begin(): Promise<void> {
			await sortAutoTopUps(statements);
			const held = await statements<{ account_id: string }>`
				select account_id from auto_top_up where state = 'on' and look_at <= now() order by look_at limit ${HELD_MAX}`;
			for (const { account_id: accountId } of held) {
				try {
					await statements`
						select auto_top_up_begin(${accountId}, ${newId("att")}, ${newId("top")}, ${newReference()})`;
				} catch (error) {
					// It stays first in the order until then and must not block the others.
					if (isDatabaseAway(error) && !(error instanceof DatabaseBusy)) throw error;
					log.warn("an automatic top-up could not be begun; it is tried again", { account: accountId, error });
				}
			}
		},

		/** Advances open attempts. Resolves when those that it began are done; the next call need not wait. */
		drive(): Promise<void> {
			const due = (places: number) => statements<Attempt>`
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
