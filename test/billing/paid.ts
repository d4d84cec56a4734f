/** People who pay by card at a service under test, and what Stripe tells of it. */
import { expect } from "bun:test";
import { type Person, signedUp } from "../console/person.ts";
import type { TestService } from "../support/service.ts";
import { type OpenedPage, signedEvent, type startStripe } from "./stripe-server.ts";

export const SECRET = "whsec_present";

export type Customer = Person & { accountId: string };

export interface AtThePage {
	readonly customer: Customer;
	readonly page: OpenedPage;
	readonly paymentId: string;
}

/** What is shared by the tests of payments: a customer at the payment page, and events as Stripe sends them. */
export function createPayers(service: TestService, stripe: ReturnType<typeof startStripe>) {
	async function deliver({ body, signature }: { body: string; signature: string }): Promise<number> {
		const headers = { "content-type": "application/json", "stripe-signature": signature };
		const response = await fetch(`${service.url}/api/stripe/webhook`, { method: "POST", headers, body });
		await response.text();
		return response.status;
	}
	async function atThePage(usd = "100", known?: Customer): Promise<AtThePage> {
		const customer = known ?? (await signedUp(service));
		const made = await customer.send("POST", "/api/console/credit/top-ups/card", { usd });
		expect(made.status).toBe(200);
		const page = stripe.pages.find((one) => one.topUpId === made.body.topUp.id);
		if (page === undefined) throw new Error("no page was opened");
		return { customer, page, paymentId: `pi_${crypto.randomUUID()}` };
	}
	return {
		deliver,
		atThePage,
		send: async (type: string, object: Record<string, unknown>) => deliver(await signedEvent(SECRET, type, object)),
		balance: async (customer: Person): Promise<number> =>
			(await customer.get("/api/console/credit")).body.balance.balanceNanoUsd,
		async stateOf(topUpId: string): Promise<string> {
			const [row] = await service.db.sql`select state from top_up where id = ${topUpId}`;
			return row?.state;
		},
		/** Open findings of a payment, with those that are fresh. */
		async findings(id: string): Promise<{ kind: string; reason: string }[]> {
			const rows = await service.db
				.sql`select kind, reason from stripe_finding where id like ${`%:${id}`} and resolved_at is null order by id`;
			return rows.map(({ kind, reason }) => ({ kind, reason }));
		},
	};
}

export function sessionOf({ page, paymentId }: AtThePage, more: Record<string, unknown> = {}) {
	return {
		id: page.id,
		object: "checkout.session",
		client_reference_id: page.topUpId,
		payment_intent: paymentId,
		payment_status: "paid",
		status: "complete",
		amount_total: page.amount,
		currency: "usd",
		...more,
	};
}
