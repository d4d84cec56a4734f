import Stripe from "stripe";
import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import { centsRoundedDown, nanoUsd } from "../money/nano-usd.ts";
import { isStripeRefusal, paymentServiceFault } from "./stripe-client.ts";
import { getTopUp, type TopUpRecord } from "./top-ups.ts";

/**
 * Closes a payment page, so that it cannot be paid. Succeeds if the page is already closed, so that the call can be
 * repeated after a crash. Rejects if the page may have been paid.
 */
export async function closePaymentPage(stripe: Stripe, pageId: string): Promise<void> {
	try {
		await stripe.checkout.sessions.expire(pageId);
	} catch (error) {
		if (!isStripeRefusal(error)) throw error;
		const { status } = await stripe.checkout.sessions.retrieve(pageId);
		if (status !== "expired") throw error;
	}
}

export function createPaymentPages(
	deps: { statements: Statements; stripe: Stripe },
	options: { readonly serviceName: string },
) {
	const { statements, stripe } = deps;

	async function pageOf(topUpId: string): Promise<string | undefined> {
		const [row] = await statements<{ id: string }>`select id from stripe_checkout where top_up_id = ${topUpId}`;
		return row?.id;
	}

	return {
		pageOf,

		/** Opens the page of a top-up. A repeated call returns the same page. */
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
								unit_amount: centsRoundedDown(nanoUsd(topUp.amountNanoUsd)),
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
			// Stored before the customer sees the page, because a payment without this row is not credited.
			await statements`
				insert into stripe_checkout (id, top_up_id) values (${page.id}, ${topUp.id}) on conflict do nothing`;
			// A separate statement, because the first one does not see the row of a concurrent transaction.
			const known = await pageOf(topUp.id);
			// Read after storing the page's row: a concurrent cancellation sees the row, so one of the two closes the page.
			const { state } = await getTopUp(statements, topUp.id);
			// Closes the new page if the top-up was decided, or if the row names another page that Stripe has forgotten.
			if (known !== page.id || state !== "pending") {
				await closePaymentPage(stripe, page.id).catch((error) => {
					// Stripe refuses if the page was closed or paid before; the conflict below then reports it.
					if (!isStripeRefusal(error)) throw error;
				});
				throw new Fault("conflict", "The payment page is closed. The payment may already have been made.");
			}
			return { id: page.id, url: page.url };
		},

		/** Closes the page of a top-up, so that it cannot be paid. Fault conflict if it may have been paid. */
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
				await closePaymentPage(stripe, page);
			} catch (error) {
				if (error instanceof Stripe.errors.StripeInvalidRequestError)
					throw new Fault("conflict", "The payment page is closed. The payment may already have been made.", {
						cause: error,
					});
				throw paymentServiceFault(error);
			}
		},
	};
}
