import { type OpenedPage, signedEvent, type startStripe } from "../billing/stripe-server.ts";

/** What Stripe says of the pages that were opened, as a test has it say. */
export function createPlayedPayments(stripe: ReturnType<typeof startStripe>, serviceUrl: string) {
	return {
		/** An event, signed with `secret`: the status that the service answers. */
		async tell(secret: string, type: string, object: Record<string, unknown>): Promise<number> {
			const { body, signature } = await signedEvent(secret, type, object);
			const headers = { "content-type": "application/json", "stripe-signature": signature };
			const response = await fetch(`${serviceUrl}/api/stripe/webhook`, { method: "POST", headers, body });
			await response.text();
			return response.status;
		},
		/** The payment page of this number, which is the last one that was opened. */
		opened(number: number): OpenedPage {
			const found = stripe.pages[number];
			if (found === undefined || stripe.pages.length !== number + 1)
				throw new Error(`${stripe.pages.length} payment pages were opened, not ${number + 1}`);
			return found;
		},
		paidSession: ({ id, topUpId, amount }: OpenedPage, payment: string) => ({
			id,
			object: "checkout.session",
			client_reference_id: topUpId,
			payment_intent: payment,
			payment_status: "paid",
			amount_total: amount,
			currency: "usd",
		}),
	};
}
