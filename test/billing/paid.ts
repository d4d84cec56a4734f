/** Customers who pay by card at a service under test, and the events that Stripe sends. */
import { afterEach, expect } from "bun:test";
import { createAccount } from "../../src/keys/account-admin.ts";
import { PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { untilEnd } from "../support/at-end.ts";
import { chatModel, JOBS_AS_USUAL, withService } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { type OpenedPage, signedEvent, startStripe } from "./stripe-server.ts";

export const SECRET = "whsec_present";
/** Previous signing secret, which stays valid while the secret is being rotated. */
export const OLD_SECRET = "whsec_past";

export type Customer = Person & { accountId: string };

export interface OpenCheckout {
	readonly customer: Customer;
	readonly page: OpenedPage;
	readonly paymentId: string;
}

/**
 * Starts a service with card payments, a simulated Stripe with its payment page, and signed events. Checks the books
 * after each test.
 */
export async function withPayers() {
	const upstream = withUpstream("vllm");
	const stripe = untilEnd(startStripe());
	const service = await withService({
		models: chatModel({ url: upstream.url, dialect: "vllm" }),
		env: {
			...PERSON_ENV,
			STRIPE_SECRET_KEY: "sk_test_local",
			STRIPE_WEBHOOK_SECRET: `${OLD_SECRET},${SECRET}`,
			STRIPE_API_BASE: stripe.url,
		},
		jobs: JOBS_AS_USUAL,
	});
	afterEach(async () => {
		expect((await service.reconciled()).filter((check) => !check.ok)).toEqual([]);
	});
	async function deliver({ body, signature }: { body: string; signature: string }): Promise<number> {
		const headers = { "content-type": "application/json", "stripe-signature": signature };
		const response = await fetch(`${service.url}/api/stripe/webhook`, { method: "POST", headers, body });
		await response.text();
		return response.status;
	}
	const person = await signedUp(service);
	const userId: string = (await person.get("/api/console/me")).body.user.id;
	/** Creates an account whose owner all tests share, because a sign-up takes a tenth of a second. */
	async function newCustomer(): Promise<Customer> {
		const { statements } = service.db;
		const { id } = await createAccount(statements, { email: `${crypto.randomUUID()}@example.com`, vouched: true });
		await statements`insert into member (user_id, account_id, role) values (${userId}, ${id}, 'owner')`;
		const at = (path: string) => `${path}${path.includes("?") ? "&" : "?"}account=${id}`;
		return {
			...person,
			accountId: id,
			get: (path, init) => person.get(at(path), init),
			send: (method, path, ...more) => person.send(method, at(path), ...more),
			fetch: (path, init) => person.fetch(at(path), init),
		};
	}
	async function atThePage(usd = "100", known?: Customer): Promise<OpenCheckout> {
		const customer = known ?? (await newCustomer());
		const made = await customer.send("POST", "/api/console/credit/top-ups/card", { usd });
		expect(made.status).toBe(200);
		const page = stripe.pages.find((one) => one.topUpId === made.body.topUp.id);
		if (page === undefined) throw new Error("no page was opened");
		expect(made.body.url).toBe(`https://pay.example/${page.id}`);
		return { customer, page, paymentId: `pi_${crypto.randomUUID()}` };
	}
	return {
		service,
		stripe,
		deliver,
		newCustomer,
		atThePage,
		send: async (
			type: string,
			object: Record<string, unknown>,
			more: Parameters<typeof signedEvent>[3] = {},
		): Promise<number> => deliver(await signedEvent(SECRET, type, object, more)),
		balance: async (customer: Person): Promise<number> =>
			(await customer.get("/api/console/credit")).body.balance.balanceNanoUsd,
		async stateOf(topUpId: string): Promise<string> {
			const [row] = await service.db.sql`select state from top_up where id = ${topUpId}`;
			return row?.state;
		},
		/** Runs the check for findings and returns the open ones of a payment. */
		async findings(id: string): Promise<{ kind: string; reason: string }[]> {
			const rows = await service.db
				.sql`select kind, reason from stripe_finding where id like ${`%:${id}`} and resolved_at is null order by id`;
			return rows.map(({ kind, reason }) => ({ kind, reason }));
		},
	};
}

export function sessionOf({ page, paymentId }: Omit<OpenCheckout, "customer">, more: Record<string, unknown> = {}) {
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

export const chargeOf = (paymentId: string, refunded: number, currency = "usd") => ({
	...{ id: `ch_${paymentId}`, object: "charge", payment_intent: paymentId, amount_refunded: refunded, currency },
});

export const disputeOf = (paymentId: string, status: string, amount = 10_000, id = `dp_${paymentId}`) => ({
	...{ id, object: "dispute", payment_intent: paymentId, amount, currency: "usd", status },
});
