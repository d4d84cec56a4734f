import Stripe from "stripe";
import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import { centsOf } from "../money/cents.ts";
import { isRefused, paymentServiceFault } from "./stripe-client.ts";
import { getTopUp, type TopUpRecord } from "./top-ups.ts";

/**
 * Closes a page, so that nothing can be paid on it any more. Stripe closes one that is open alone: one that was closed before
 * stays closed, or whoever died before writing that down could never do so. Rejects if something may have been paid on it.
 */
export async function closePage(stripe: Stripe, pageId: string): Promise<void> {
	try {
		await stripe.checkout.sessions.expire(pageId);
	} catch (error) {
		if (!isRefused(error)) throw error;
		const { status } = await stripe.checkout.sessions.retrieve(pageId);
		if (status !== "expired") throw error;
	}
}

/** Stripe's own pages, on which top-ups are paid. */
export function createPaymentPages(
	deps: { statements: Statements; stripe: Stripe },
	options: { readonly serviceName: string },
) {
	const { statements, stripe } = deps;

	/** The id of its page, if it has one. */
	async function pageOf(topUpId: string): Promise<string | undefined> {
		const [row] = await statements<{ id: string }>`select id from stripe_checkout where top_up_id = ${topUpId}`;
		return row?.id;
	}

	return {
		pageOf,

		/** The one where this top-up is paid: the same, however often it is asked for. */
		async open(
			topUp: TopUpRecord,
			payer: { customer_email: string } | { customer: string; saved: true },
			back: string,
		): Promise<{ id: string; url: string }> {
			const { saved: isSaved, ...who } = { saved: false, ...payer };
			const page = await stripe.checkout.sessions.create(
				{
					mode: "payment",
					client_reference_id: topUp.id,
					...who,
					line_items: [
						{
							quantity: 1,
							price_data: {
								currency: "usd",
								unit_amount: centsOf(topUp.amountNanoUsd),
								product_data: { name: `Prepaid credit, ${options.serviceName}` },
							},
						},
					],
					metadata: { top_up: topUp.id, account: topUp.accountId },
					payment_intent_data: {
						metadata: { top_up: topUp.id, account: topUp.accountId },
						...(isSaved ? { setup_future_usage: "off_session" as const } : {}),
					},
					success_url: `${back}done`,
					cancel_url: `${back}cancelled`,
				},
				{ idempotencyKey: topUp.id },
			);
			if (page.url === null) throw new Error("the payment page has no address");
			// Stored before anybody can pay: without this row a payment is not taken for this top-up.
			await statements`
				insert into stripe_checkout (id, top_up_id) values (${page.id}, ${topUp.id}) on conflict do nothing`;
			// Behind it: a statement does not see the row of another one that stood in its way.
			const known = await pageOf(topUp.id);
			// Behind that row: who gives the top-up up meanwhile looks for it when he has, so that one of both closes the page.
			const { state } = await getTopUp(statements, topUp.id);
			// Stripe has forgotten the page that this top-up has, which may have been paid: nobody is to pay on another one.
			if (known !== page.id || state !== "pending") {
				await closePage(stripe, page.id).catch((error) => {
					// It is closed: what was paid on it is told below.
					if (!isRefused(error)) throw error;
				});
				throw new Fault("conflict", "The payment page is closed: the payment may have been made.");
			}
			return { id: page.id, url: page.url };
		},

		/** Closes it, so that it cannot be paid any more. Fault conflict if it may have been paid already. */
		async expire(topUpId: string): Promise<void> {
			const page = await pageOf(topUpId);
			if (page === undefined) {
				const open = await statements`
					select 1 from auto_top_up_attempt where top_up_id = ${topUpId} and state in ('begun', 'sent', 'unknown')`;
				if (open.length > 0)
					throw new Fault("conflict", "The saved card is being charged: it cannot be cancelled now.");
				return;
			}
			try {
				await closePage(stripe, page);
			} catch (error) {
				if (error instanceof Stripe.errors.StripeInvalidRequestError)
					throw new Fault("conflict", "The payment page is closed: the payment may have been made.", { cause: error });
				throw paymentServiceFault(error);
			}
		},
	};
}
