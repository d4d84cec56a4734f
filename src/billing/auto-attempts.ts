import type Stripe from "stripe";
import { errorText } from "../base/error-record.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { DatabaseBusy, isDatabaseAway } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import type { Attempt } from "./auto-payments.ts";
import { createAutoPayments } from "./auto-payments.ts";
import { sortAutoTopUps } from "./auto-top-ups.ts";
import { closePage } from "./payment-pages.ts";
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
const UNDECIDED = "a saved card may be charged: for two days Stripe has not said whether it is";
/** Until Stripe is asked again what became of it, by how often it was asked. */
const WAITS_S = [5, 15, 60, 300, 900, 3_600];

export function createAutoAttempts(deps: {
	statements: Statements;
	tx: Transactional;
	stripe: Stripe;
	log: Log;
}): AutoAttempts {
	const { statements, stripe, log } = deps;
	const payments = createAutoPayments(deps);
	const underWay = createUnderWay(DRIVEN_MAX);

	/** False if it has none. */
	async function closePageOf(attempt: Attempt): Promise<boolean> {
		const [page] = await statements<{ id: string }>`
			select id from stripe_checkout where top_up_id = ${attempt.top_up_id}`;
		if (page !== undefined) await closePage(stripe, page.id);
		return page !== undefined;
	}

	/** Its owner pays on a page, cancels it, or does neither; or he has given up paying it by what he set since. */
	async function settleWaiting(attempt: Attempt): Promise<void> {
		if (attempt.given_up) {
			// Closed first: a page that may have been paid is left to say so.
			const hadPage = await closePageOf(attempt);
			await statements`
				update top_up set state = 'rejected', decided_at = clock_timestamp(), decided_by = 'stripe'
				where id = ${attempt.top_up_id} and state = 'pending'`;
			// One that is being opened meanwhile is closed by whoever comes second.
			if (!hadPage) await closePageOf(attempt);
		}
		await statements`select auto_top_up_decided(${attempt.id})`;
	}

	/** Never rejects: what is not known is asked again. */
	async function moveAndNote(attempt: Attempt): Promise<void> {
		try {
			const isWaiting = attempt.state === "needs_authentication";
			await (isWaiting ? settleWaiting(attempt) : payments.move(attempt)).catch(async (error) => {
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
				try {
					await statements`
						select auto_top_up_begin(${accountId}, ${newId("att")}, ${newId("top")}, ${newReference()})`;
				} catch (error) {
					// It stays the first one until then, and must not keep the others from their turn.
					if (isDatabaseAway(error) && !(error instanceof DatabaseBusy)) throw error;
					log.warn("an automatic top-up could not be begun; it is tried again", { account: accountId, error });
				}
			}
		},

		drive() {
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
