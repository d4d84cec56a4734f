import Stripe from "stripe";
import { type Clock, sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { createAutoAttempts } from "./auto-payments.ts";
import { createPaymentPages } from "./payment-pages.ts";
import { createSavedCards } from "./saved-cards.ts";
import { compareDaily } from "./stripe-clearing.ts";
import { connectStripe, paymentServiceFault, type StripeAddress } from "./stripe-client.ts";
import { applyStripeEvent, collectRefunds, creditHeldPayments } from "./stripe-events.ts";
import { getTopUp, rejectTopUp, type TopUpRecord } from "./top-ups.ts";

export type CardPayments = ReturnType<typeof createCardPayments>;

export interface CardPaymentsOptions extends StripeAddress {
	/** Signing secrets of Stripe's webhook; two while the secret is being rotated. */
	readonly webhookSecrets: readonly string[];
	readonly serviceName: string;
}

/** Maximum bytes of an event from Stripe. */
export const EVENT_BYTES_MAX = 1024 * 1024;
/** Longest wait in milliseconds of a round for its calls to Stripe; the next round then starts with other accounts. */
const TURN_MS = 5_000;

/** Top-ups by card, paid on Stripe's page. This service never gets a card number. */
export function createCardPayments(
	deps: { statements: Statements; tx: Transactional; clock: Clock; log: Log },
	options: CardPaymentsOptions,
) {
	const { statements, tx, clock, log } = deps;
	const stripe = connectStripe(options);
	const pages = createPaymentPages({ statements, stripe }, options);
	const saved = createSavedCards({ statements, stripe, log }, options);
	const attempts = createAutoAttempts({ statements, tx, stripe, log });
	const isLive = /^(sk|rk)_live_/.test(options.secretKey);

	const inTurn = (work: Promise<void>) => Promise.race([work, sleep(clock, TURN_MS)]);

	return {
		saved,

		/**
		 * Opens Stripe's page for a pending top-up and returns its URL. Stripe redirects to `back` + "done" or "cancelled".
		 */
		async checkout(topUp: TopUpRecord, { email, back }: { email: string; back: string }): Promise<string> {
			try {
				return (await pages.open(topUp, { customer_email: email }, back)).url;
			} catch (error) {
				// Rejects the top-up only without a page: an earlier request may have opened a page that is being paid.
				if ((await pages.pageOf(topUp.id)) === undefined) {
					await rejectTopUp(statements, topUp.id, "stripe");
					// Closes a page that a concurrent request may have opened since.
					await pages.expire(topUp.id);
				}
				throw paymentServiceFault(error);
			}
		},

		/**
		 * Like `checkout`, for an automatic top-up that its owner must confirm. Also saves the card. Faults: not_found if
		 * no top-up waits, service_unavailable.
		 */
		async finish(accountId: string, back: string): Promise<string> {
			const [row] = await statements<{ top_up_id: string; customer_id: string }>`
				select a.top_up_id, a.customer_id from auto_top_up_attempt a join top_up t on t.id = a.top_up_id
				where a.account_id = ${accountId} and a.state = 'needs_authentication' and t.state = 'pending'`;
			if (row === undefined) throw new Fault("not_found", "No payment needs confirmation.");
			try {
				const topUp = await getTopUp(statements, row.top_up_id);
				const page = await pages.open(topUp, { customer: row.customer_id, saved: true }, `${back}${topUp.id}&payment=`);
				await saved.expect(accountId, page.id);
				return page.url;
			} catch (error) {
				throw paymentServiceFault(error);
			}
		},

		expire: pages.expire,

		/** Handles Stripe's webhook. Answers 2xx only after all effects of the event are committed. */
		async webhook(request: Request): Promise<Response> {
			// The unparsed text, because the signature covers its bytes.
			const body = await request.text();
			const signature = request.headers.get("stripe-signature") ?? "";
			const event = await verified(body, signature, { stripe, secrets: options.webhookSecrets });
			if (event === undefined) throw new Fault("invalid_request", "The signature is not valid.");
			if (event.livemode !== isLive)
				throw new Fault("invalid_request", "The event's mode (live or test) differs from that of this service's key.");
			const outcome = await applyStripeEvent(tx, event);
			const fields = { event: event.id, type: event.type, outcome };
			if (outcome === "applied" || outcome === "ignored" || outcome === "known") log.info("a payment event", fields);
			else log.warn("a payment event was refused", fields);
			return Response.json({ received: true });
		},

		/**
		 * Collects refunds that accounts still owe because instances held their credit. Credits payments that did not fit
		 * below the largest amount before.
		 */
		async collect(): Promise<void> {
			await creditHeldPayments(tx);
			await collectRefunds(tx);
			await inTurn(saved.collect());
		},

		async topUpAutomatically(): Promise<void> {
			await attempts.begin();
			await inTurn(attempts.drive());
		},

		/** Resolves when `collect` and the automatic top-ups have no call to Stripe in progress. */
		async ended(): Promise<void> {
			await Promise.all([attempts.ended(), saved.ended()]);
		},

		/** Compares Stripe's lists with the books, once a day on one instance. Null if that was done today already. */
		clear: () => compareDaily({ tx, statements, stripe, log, clock }),
	};
}

/** Returns the event if one of the secrets verifies it: during a rotation, Stripe signs with both. */
async function verified(body: string, signature: string, by: { stripe: Stripe; secrets: readonly string[] }) {
	for (const secret of by.secrets) {
		try {
			return await by.stripe.webhooks.constructEventAsync(body, signature, secret);
		} catch (error) {
			if (!(error instanceof Stripe.errors.StripeSignatureVerificationError)) throw error;
		}
	}
	return undefined;
}
