import { expect, test } from "bun:test";
import { operator } from "../console/person.ts";
import { LONG } from "../support/long-form.ts";
import { waitFor } from "../support/wait.ts";
import { type Customer, chargeOf, disputeOf, OLD_SECRET, SECRET, sessionOf, withPayers } from "./paid.ts";
import { type OpenedPage, signedEvent } from "./stripe-server.ts";

const { atThePage, balance, deliver, newCustomer, send, service, stateOf, stripe } = await withPayers();

const session = (page: OpenedPage, paymentId: string, more: Record<string, unknown> = {}) =>
	sessionOf({ page, paymentId }, more);

async function paid(usd = "100") {
	const at = await atThePage(usd);
	expect(await send("checkout.session.completed", session(at.page, at.paymentId))).toBe(200);
	return at;
}

async function accountState(customer: Customer): Promise<string> {
	const [row] = await service.db.sql`select state from account where id = ${customer.accountId}`;
	return row?.state;
}
async function outcomes(topUpId: string): Promise<string[]> {
	const rows = await service.db
		.sql`select detail->>'outcome' as outcome from audit_event where subject = ${topUpId} and actor = 'stripe' order by id`;
	return rows.map((row) => row.outcome);
}

test("a card payment a cent above Stripe's maximum is refused and not recorded", async () => {
	expect((await atThePage("999999.99")).page.amount).toBe(99_999_999);
	const customer = await newCustomer();
	for (const usd of ["1000000", "1000000.01", "9007199.25"]) {
		const { status, body } = await customer.send("POST", "/api/console/credit/top-ups/card", { usd });
		expect([usd, status, body.error?.param, body.error?.message]).toEqual([
			...[usd, 400, "usd", "A card payment is at most USD 999999.99."],
		]);
	}
	expect((await customer.get("/api/console/credit/top-ups")).body.items).toEqual([]);
	expect((await customer.send("POST", "/api/console/credit/top-ups/transfer", { usd: "1000000" })).status).toBe(200);
});

test("a card payment gives credit only once Stripe reports it as paid", async () => {
	const { customer, page, paymentId } = await atThePage("250.5");
	expect(page.amount).toBe(25_050);
	expect(page.idempotencyKey).toBe(page.topUpId);
	expect(page.fields.get("line_items[0][price_data][currency]")).toBe("usd");
	expect(await balance(customer)).toBe(0);
	expect(await send("checkout.session.completed", session(page, paymentId, { payment_status: "unpaid" }))).toBe(200);
	expect(await balance(customer)).toBe(0);
	expect(await send("checkout.session.async_payment_succeeded", session(page, paymentId))).toBe(200);
	expect(await balance(customer)).toBe(250.5e9);
	expect(await stateOf(page.topUpId)).toBe("confirmed");
});

test("a card payment below the minimum or with fractions of a cent opens no page", async () => {
	const customer = await newCustomer();
	const before = stripe.pages.length;
	for (const usd of ["99.99", "100.001", "-100", "1e3"])
		expect((await customer.send("POST", "/api/console/credit/top-ups/card", { usd })).status).toBe(400);
	expect(stripe.pages.length).toBe(before);
});

test("a forged, altered, old or unsigned Stripe event changes nothing", async () => {
	const { customer, page, paymentId } = await atThePage();
	const object = session(page, paymentId);
	const good = await signedEvent(SECRET, "checkout.session.completed", object);
	const forged = await signedEvent("whsec_guess", "checkout.session.completed", object);
	const old = await signedEvent(SECRET, "checkout.session.completed", object, {
		timestamp: Math.floor(Date.now() / 1000) - 3600,
	});
	expect(await deliver(forged)).toBe(400);
	expect(await deliver(old)).toBe(400);
	expect(await deliver({ body: good.body, signature: "" })).toBe(400);
	expect(await deliver({ body: good.body.replace("10000", "10001"), signature: good.signature })).toBe(400);
	expect(await deliver({ body: ` ${good.body}`, signature: good.signature })).toBe(400);
	expect(await send("checkout.session.completed", object, { livemode: true })).toBe(400);
	expect(await balance(customer)).toBe(0);
	const [events] = await service.db
		.sql`select count(*)::int as count from stripe_event where detail->>'payment' = ${paymentId}`;
	expect(events?.count).toBe(0);
});

test("events signed with the old or the new secret are accepted during a rotation", async () => {
	const { customer, page, paymentId } = await atThePage();
	expect(await deliver(await signedEvent(OLD_SECRET, "checkout.session.completed", session(page, paymentId)))).toBe(
		200,
	);
	expect(await balance(customer)).toBe(100e9);
});

test("a card payment is credited once however many Stripe events report it", async () => {
	const { customer, page, paymentId } = await atThePage();
	const event = await signedEvent(SECRET, "checkout.session.completed", session(page, paymentId));
	expect(await Promise.all(Array.from({ length: 4 }, () => deliver(event)))).toEqual(Array(4).fill(200));
	const others = Array.from({ length: 4 }, () =>
		send("checkout.session.async_payment_succeeded", session(page, paymentId)),
	);
	expect(await Promise.all(others)).toEqual(Array(4).fill(200));
	expect(await balance(customer)).toBe(100e9);
	const entries = await service.db.sql`select kind from ledger_entry where account_id = ${customer.accountId}`;
	expect(entries.map((entry) => entry.kind)).toEqual(["top_up"]);
});

test("a card payment with a wrong amount, currency or page is recorded, not credited", async () => {
	const { customer, page, paymentId } = await atThePage();
	expect(await send("checkout.session.completed", session(page, paymentId, { amount_total: 9_999 }))).toBe(200);
	expect(await send("checkout.session.completed", session(page, paymentId, { currency: "eur" }))).toBe(200);
	expect(await send("checkout.session.completed", session(page, paymentId, { id: "cs_other" }))).toBe(200);
	expect(await send("checkout.session.completed", session(page, paymentId, { payment_intent: null }))).toBe(200);
	expect(await balance(customer)).toBe(0);
	expect(await stateOf(page.topUpId)).toBe("pending");
	expect(await outcomes(page.topUpId)).toEqual([
		"refused: another amount",
		"refused: another currency",
		"refused: this payment page is not ours",
		"refused: no payment is named",
	]);
});

test("a card payment pays one top-up, and a top-up takes one card payment", async () => {
	const first = await paid();
	const second = await atThePage();
	expect(await send("checkout.session.completed", session(second.page, first.paymentId))).toBe(200);
	expect(await balance(second.customer)).toBe(0);
	expect(await send("checkout.session.completed", session(first.page, second.paymentId))).toBe(200);
	expect(await balance(first.customer)).toBe(100e9);
	expect(await outcomes(second.page.topUpId)).toEqual(["refused: the payment has paid another top-up"]);
	expect(await outcomes(first.page.topUpId)).toEqual(["applied", "refused: the top-up was paid by another payment"]);
});

test("an expired page rejects its top-up, but a later card payment is credited", async () => {
	const { customer, page, paymentId } = await atThePage();
	expect(await send("checkout.session.expired", session(page, paymentId, { payment_status: "unpaid" }))).toBe(200);
	expect(await stateOf(page.topUpId)).toBe("rejected");
	expect(await send("checkout.session.completed", session(page, paymentId))).toBe(200);
	expect(await balance(customer)).toBe(100e9);
	expect(await send("checkout.session.expired", session(page, paymentId))).toBe(200);
	expect(await stateOf(page.topUpId)).toBe("confirmed");
});

test("several refund events of a payment, in any sequence, take the refund once", async () => {
	const { customer, page, paymentId } = await paid("200");
	expect(await send("charge.refunded", chargeOf(paymentId, 5_000))).toBe(200);
	expect(await balance(customer)).toBe(150e9);
	expect(await send("charge.refunded", chargeOf(paymentId, 8_000))).toBe(200);
	expect(await send("charge.refunded", chargeOf(paymentId, 5_000))).toBe(200);
	expect(await balance(customer)).toBe(120e9);
	expect(await send("charge.refunded", chargeOf(paymentId, 20_000, "eur"))).toBe(200);
	expect(await balance(customer)).toBe(120e9);
	expect(await stateOf(page.topUpId)).toBe("confirmed");
	await Promise.all(Array.from({ length: 6 }, () => send("charge.refunded", chargeOf(paymentId, 20_000))));
	expect(await balance(customer)).toBe(0);
	expect(await stateOf(page.topUpId)).toBe("refunded");
});

test("a refund of held credit is taken when the credit is free, and overdraws nothing", async () => {
	const { customer, paymentId } = await paid();
	const { secret } = (await customer.send("POST", "/api/console/keys", { name: "k" })).body;
	const body = { model: "test-model", messages: [{ role: "user", content: "hi" }], max_tokens: 5 };
	await (await service.post("/v1/chat/completions", secret, body)).text();
	await service.settled();
	expect((await customer.get("/api/console/credit")).body.balance.spentNanoUsd).toBeGreaterThan(0);
	expect(await send("charge.refunded", chargeOf(paymentId, 10_000))).toBe(200);
	// Less than a cent of credit is left, so the owed fraction of a cent stays owed.
	await waitFor(async () => (await balance(customer)) < 10_000_000, "the rest to be collected", 20_000);
	expect(await balance(customer)).toBeGreaterThanOrEqual(0);
	const [payment] = await service.db.sql`select booked_refund_cents from stripe_payment where id = ${paymentId}`;
	expect(Number(payment?.booked_refund_cents)).toBe(9_999);
}, 30_000);

test("a dispute takes its amount even if spent, and suspends the account until won", async () => {
	const { customer, page, paymentId } = await paid();
	const { secret } = (await customer.send("POST", "/api/console/keys", { name: "k" })).body;
	const body = { model: "test-model", messages: [{ role: "user", content: "hi" }] };
	await (await service.post("/v1/chat/completions", secret, body)).text();
	await service.settled();
	const before = await balance(customer);
	expect(await send("charge.dispute.created", disputeOf(paymentId, "needs_response"))).toBe(200);
	expect(await balance(customer)).toBe(before - 100e9);
	expect(await accountState(customer)).toBe("suspended");
	expect(await stateOf(page.topUpId)).toBe("disputed");
	// Polls with a request that costs nothing, because another request would be charged.
	await waitFor(async () => (await service.get("/v1/models", secret)).status === 403, "the suspension to be in force");
	const refused = await service.post("/v1/chat/completions", secret, body);
	expect(refused.status).toBe(403);
	await refused.text();
	expect(await send("charge.dispute.updated", disputeOf(paymentId, "under_review"))).toBe(200);
	expect(await send("charge.dispute.closed", disputeOf(paymentId, "won"))).toBe(200);
	expect(await send("charge.dispute.created", disputeOf(paymentId, "needs_response"))).toBe(200);
	expect(await balance(customer)).toBe(before);
	expect(await accountState(customer)).toBe("active");
	expect(await stateOf(page.topUpId)).toBe("confirmed");
});

test("a dispute or refund with an invalid amount changes nothing", async () => {
	const { customer, paymentId, page } = await paid();
	const nothing = [-10_000, -1, 0, 0.5, 1e15, 100_000_001, null as unknown as number, "10000" as unknown as number];
	for (const [nth, amount] of nothing.entries()) {
		const statuses = ["needs_response", "won", "lost"];
		for (const status of LONG ? statuses : statuses.slice(nth % 3, (nth % 3) + 1))
			expect(await send("charge.dispute.created", disputeOf(paymentId, status, amount, `dp_none_${nth}`))).toBe(200);
		expect(await send("charge.refunded", chargeOf(paymentId, amount))).toBe(200);
	}
	expect([await balance(customer), await stateOf(page.topUpId), await accountState(customer)]).toEqual([
		100e9,
		"confirmed",
		"active",
	]);
	expect(await service.db.sql`select id from stripe_dispute where payment_id = ${paymentId}`).toEqual([] as never);
});

test("after a lost dispute the money stays taken and the account suspended", async () => {
	const { customer, paymentId } = await paid();
	expect(await send("charge.dispute.closed", disputeOf(paymentId, "lost"))).toBe(200);
	expect(await send("charge.dispute.created", disputeOf(paymentId, "needs_response"))).toBe(200);
	expect(await send("charge.dispute.closed", disputeOf(paymentId, "won"))).toBe(200);
	expect(await balance(customer)).toBe(0);
	expect(await accountState(customer)).toBe("suspended");
});

test("an account with two disputes is active again once both are won", async () => {
	const { customer, paymentId } = await paid("200");
	await send("charge.dispute.created", disputeOf(paymentId, "needs_response", 5_000, "dp_a"));
	await send("charge.dispute.created", disputeOf(paymentId, "needs_response", 5_000, "dp_b"));
	expect(await balance(customer)).toBe(100e9);
	await send("charge.dispute.closed", disputeOf(paymentId, "won", 5_000, "dp_a"));
	expect(await accountState(customer)).toBe("suspended");
	await send("charge.dispute.closed", disputeOf(paymentId, "won", 5_000, "dp_b"));
	expect(await accountState(customer)).toBe("active");
	expect(await balance(customer)).toBe(200e9);
});

test("a suspension by an operator continues after a won dispute", async () => {
	const boss = await operator(service);
	const { customer, paymentId } = await paid();
	const decide = async (act: string) => {
		const at = `/api/console/operator/accounts/${customer.accountId}/${act}`;
		expect((await boss.send("POST", at, { reason: "looked at by a person" })).status).toBe(200);
	};
	await send("charge.dispute.created", disputeOf(paymentId, "needs_response", 3_000));
	expect(await accountState(customer)).toBe("suspended");
	await decide("unsuspend");
	await decide("suspend");
	await send("charge.dispute.closed", disputeOf(paymentId, "won", 3_000));
	expect([await balance(customer), await accountState(customer)]).toEqual([100e9, "suspended"]);
	await decide("unsuspend");
	expect(await accountState(customer)).toBe("active");
});

test("a bank's inquiry about a card payment takes no credit and suspends nothing", async () => {
	const { customer, paymentId } = await paid();
	expect(await send("charge.dispute.created", disputeOf(paymentId, "warning_needs_response"))).toBe(200);
	expect(await balance(customer)).toBe(100e9);
	expect(await accountState(customer)).toBe("active");
});

/** The short run tests each event in each position and directly after each other event. */
const ORDERS: readonly (readonly number[])[] = [
	[0, 1, 3, 2],
	[1, 2, 0, 3],
	[2, 3, 1, 0],
	[3, 0, 2, 1],
];

test("the Stripe events of a payment give the same books in every sequence", async () => {
	const kinds = ["paid", "refund", "disputed", "won"] as const;
	const shared = await newCustomer();
	for (const order of LONG ? permutations([...kinds]) : ORDERS.map((places) => places.map((at) => kinds[at]))) {
		const { customer, page, paymentId } = await atThePage("100", shared);
		const events = {
			paid: () => send("checkout.session.completed", session(page, paymentId)),
			refund: () => send("charge.refunded", chargeOf(paymentId, 3_000)),
			disputed: () => send("charge.dispute.created", disputeOf(paymentId, "needs_response", 7_000)),
			won: () => send("charge.dispute.closed", disputeOf(paymentId, "won", 7_000)),
		};
		const before = await balance(customer);
		for (const kind of order) expect(await events[kind as keyof typeof events]()).toBe(200);
		expect({ order, gained: (await balance(customer)) - before }).toEqual({ order, gained: 70e9 });
		expect(await accountState(customer)).toBe("active");
	}
}, 60_000);

function permutations<T>(items: T[]): T[][] {
	if (items.length <= 1) return [items];
	return items.flatMap((item, place) =>
		permutations(items.filter((_, other) => other !== place)).map((rest) => [item, ...rest]),
	);
}

test("concurrent Stripe events of a payment give the same books as one by one", async () => {
	const { customer, page, paymentId } = await atThePage();
	const all = await Promise.all([
		send("charge.refunded", chargeOf(paymentId, 1_000)),
		send("checkout.session.completed", session(page, paymentId)),
		send("charge.dispute.created", disputeOf(paymentId, "needs_response", 5_000)),
		send("charge.refunded", chargeOf(paymentId, 2_000)),
		send("checkout.session.async_payment_succeeded", session(page, paymentId)),
		send("charge.dispute.closed", disputeOf(paymentId, "lost", 5_000)),
	]);
	expect(all.filter((status) => status !== 200)).toEqual([]);
	await waitFor(async () => (await balance(customer)) === 30e9, "what was left to each other to be booked", 15_000);
}, 30_000);

test("cancelling a top-up closes its page first; a page that may be paid keeps it", async () => {
	const { customer, page } = await atThePage();
	const cancelled = await customer.send("POST", `/api/console/credit/top-ups/${page.topUpId}/cancel`);
	expect(cancelled.body.topUp.state).toBe("rejected");
	expect(stripe.expired.has(page.id)).toBe(true);
	const other = await atThePage();
	stripe.paid.add(other.page.id);
	const refused = await other.customer.send("POST", `/api/console/credit/top-ups/${other.page.topUpId}/cancel`);
	expect(refused.status).toBe(409);
	expect(await stateOf(other.page.topUpId)).toBe("pending");
});

test("an operator can neither confirm nor reject a card payment", async () => {
	const boss = await operator(service);
	const { page } = await atThePage();
	const bodies = { confirm: { transactionReference: "BANK-2027-01" }, reject: { reason: "no payment was found" } };
	for (const [act, body] of Object.entries(bodies))
		expect((await boss.send("POST", `/api/console/operator/top-ups/${page.topUpId}/${act}`, body)).status).toBe(409);
	expect(await stateOf(page.topUpId)).toBe("pending");
});

test("an outage of Stripe is reported without its text and leaves no pending top-up", async () => {
	const customer = await newCustomer();
	stripe.fail(true);
	try {
		const made = await customer.send("POST", "/api/console/credit/top-ups/card", { usd: "100" });
		expect(made.status).toBe(503);
		expect(JSON.stringify(made.body)).not.toContain("secret detail");
	} finally {
		stripe.fail(false);
	}
	const list = await customer.get("/api/console/credit/top-ups");
	expect(list.body.items.map((item: { state: string }) => item.state)).toEqual(["rejected"]);
});

test("a Stripe event repeated after a database failure is applied once", async () => {
	const { customer, page, paymentId } = await atThePage();
	const event = await signedEvent(SECRET, "checkout.session.completed", session(page, paymentId));
	await service.db.sql`alter table stripe_payment add constraint test_away check (false) not valid`;
	try {
		expect(await deliver(event)).toBe(500);
	} finally {
		await service.db.sql`alter table stripe_payment drop constraint test_away`;
	}
	expect(await balance(customer)).toBe(0);
	expect(await deliver(event)).toBe(200);
	expect(await balance(customer)).toBe(100e9);
});

test("concurrent requests leave at most twenty pending top-ups of an account", async () => {
	const customer = await newCustomer();
	const ask = () => customer.send("POST", "/api/console/credit/top-ups/transfer", { usd: "100" });
	const asked = await Promise.all(Array.from({ length: 26 }, ask));
	expect(asked.filter(({ status }) => status === 200)).toHaveLength(20);
	expect(new Set(asked.map(({ status }) => status))).toEqual(new Set([200, 409]));
	const made = asked.find(({ status }) => status === 200);
	await customer.send("POST", `/api/console/credit/top-ups/${made?.body.topUp.id}/cancel`);
	expect([(await ask()).status, (await ask()).status]).toEqual([200, 409]);
});
