import { beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { createCardPayments } from "../../src/billing/card-payments.ts";
import { chargeOf, disputeOf, type OpenCheckout, SECRET, sessionOf, withPayers } from "./paid.ts";

const { atThePage, balance, findings, send, service, stateOf, stripe } = await withPayers();
const log = createLog({ level: "error", write: () => {} });
const consoleOf = () =>
	createCardPayments(
		{ statements: service.db.statements, tx: service.db.tx, clock: systemClock, log },
		{ secretKey: "sk_test_local", webhookSecrets: [SECRET], apiBase: stripe.url, serviceName: "Tollgate" },
	);

beforeEach(async () => {
	for (const list of Object.values(stripe.held)) list.length = 0;
	await service.db.sql`delete from stripe_finding`;
	await service.db.sql`delete from stripe_checkout`;
	await service.db.sql`delete from stripe_clearing`;
});

/** Makes a payment at the simulated Stripe, without sending its event. */
async function paidThere(usd?: string): Promise<OpenCheckout> {
	const at = await atThePage(usd);
	stripe.held["checkout/sessions"].unshift(sessionOf(at));
	return at;
}
async function paid(usd?: string): Promise<OpenCheckout> {
	const at = await paidThere(usd);
	expect(await send("checkout.session.completed", sessionOf(at))).toBe(200);
	return at;
}
const charge = ({ paymentId }: OpenCheckout, refunded: number) => chargeOf(paymentId, refunded);
const refund = ({ paymentId }: OpenCheckout, amount: number, more: Record<string, unknown> = {}) => ({
	id: `re_${crypto.randomUUID()}`,
	object: "refund",
	payment_intent: paymentId,
	charge: `ch_${paymentId}`,
	status: "succeeded",
	amount,
	currency: "usd",
	...more,
});
const dispute = ({ paymentId }: OpenCheckout, status: string, amount?: number) => disputeOf(paymentId, status, amount);

const open = async (): Promise<string[]> => {
	return (await service.db.sql`select id from stripe_finding where resolved_at is null`).map(({ id }) => id);
};

async function clear() {
	await service.db.sql`update stripe_clearing set day = day - 1 - (select count(*)::int from stripe_clearing)`;
	return consoleOf().clear();
}

test("the daily comparison changes nothing if books and Stripe's lists agree", async () => {
	const at = await paid();
	const other = await paid("200");
	stripe.held.refunds.push(refund(other, 5_000), refund(other, 2_000), refund(other, 900, { status: "failed" }));
	await send("charge.refunded", charge(other, 7_000));
	stripe.held.disputes.push(dispute(at, "needs_response"));
	await send("charge.dispute.created", dispute(at, "needs_response"));
	const audited = await service.db.sql`select count(*)::int as count from audit_event`;
	expect(await clear()).toMatchObject({ taken: 0 });
	expect(await open()).toEqual([]);
	expect(await service.db.sql`select count(*)::int as count from audit_event`).toEqual(audited);
	expect(await balance(at.customer)).toBe(0);
	expect(await balance(other.customer)).toBe(130e9);
});

test("the daily comparison credits once a payment whose event is missing", async () => {
	const all = [await paidThere(), await paidThere("200"), await paidThere("300"), await paidThere("150.50")];
	const balances = () => Promise.all(all.map((at) => balance(at.customer)));
	const expected = [100e9, 200e9, 300e9, 150.5e9];
	expect(await clear()).toMatchObject({ compared: 4, taken: 4 });
	expect(await balances()).toEqual(expected);
	expect(await clear()).toMatchObject({ compared: 4, taken: 0 });
	for (const at of all) await send("checkout.session.completed", sessionOf(at));
	expect(await balances()).toEqual(expected);
	expect(await open()).toEqual([]);
});

test("the daily comparison books refunds and disputes whose events are missing", async () => {
	const at = await paid("200");
	stripe.held.refunds.push(refund(at, 3_000), refund(at, 1_000));
	expect(await clear()).toMatchObject({ taken: 1 });
	expect(await balance(at.customer)).toBe(160e9);
	stripe.held.disputes.push(dispute(at, "under_review", 5_000));
	expect(await clear()).toMatchObject({ taken: 1 });
	expect(await balance(at.customer)).toBe(110e9);
	expect(await stateOf(at.page.topUpId)).toBe("disputed");
	stripe.held.disputes[0] = dispute(at, "won", 5_000);
	expect(await clear()).toMatchObject({ taken: 1 });
	expect(await balance(at.customer)).toBe(160e9);
	expect(await findings(at.paymentId)).toEqual([]);
});

test("the daily comparison reports another service's payment without crediting it", async () => {
	const less = await atThePage();
	const strange = await atThePage();
	stripe.held["checkout/sessions"].push(
		sessionOf(less, { amount_total: 1 }),
		sessionOf(strange, { id: "cs_unknown" }),
		sessionOf(await atThePage(), { client_reference_id: "order-1" }),
		sessionOf(await atThePage(), { payment_status: "unpaid" }),
	);
	await clear();
	expect(await findings(less.paymentId)).toEqual([{ kind: "uncredited", reason: "refused: another amount" }]);
	expect(await findings(strange.paymentId)).toEqual([
		{ kind: "uncredited", reason: "refused: this payment page is not ours" },
	]);
	expect(await balance(less.customer)).toBe(0);
	expect(await open()).toHaveLength(2);
});

test("the daily comparison reports credit without a matching payment at Stripe", async () => {
	const unknown = await paid();
	const unpaid = await paid();
	const smaller = await paid();
	const other = await paid();
	stripe.held["checkout/sessions"].length = 0;
	stripe.held["checkout/sessions"].push(
		sessionOf(unpaid, { payment_status: "unpaid", status: "open" }),
		sessionOf(smaller, { amount_total: 9_000 }),
		sessionOf(other, { payment_intent: "pi_other" }),
	);
	await clear();
	const rows = await service.db
		.sql`select id, reason from stripe_finding where resolved_at is null and kind = 'unpaid' order by found_at`;
	const reasons = new Map(rows.map(({ id, reason }) => [id, reason]));
	const not = "the books credited a payment that Stripe does not list as paid";
	expect(reasons.get(`books:${unknown.page.topUpId}`)).toBe(not);
	expect(reasons.get(`books:${unpaid.page.topUpId}`)).toBe(not);
	expect(reasons.get(`books:${smaller.page.topUpId}`)).toBe("the books credited another amount than Stripe lists");
	expect(reasons.get(`books:${other.page.topUpId}`)).toBe(
		"the books credited another payment than the one Stripe lists",
	);
	stripe.held["checkout/sessions"].length = 0;
	stripe.held["checkout/sessions"].push(...[unknown, unpaid, smaller, other].map((at) => sessionOf(at)));
	await clear();
	expect(await findings(unknown.page.topUpId)).toEqual([]);
	expect(await findings(smaller.page.topUpId)).toEqual([]);
});

test("the daily comparison reports a booked refund or dispute that Stripe lacks", async () => {
	const at = await paid("200");
	await send("charge.refunded", charge(at, 5_000));
	stripe.held.refunds.push(refund(at, 5_000, { status: "failed" }));
	const disputed = await paid();
	await send("charge.dispute.created", dispute(disputed, "needs_response"));
	await clear();
	expect(await findings(at.paymentId)).toEqual([
		{ kind: "refund", reason: "Stripe refunded 0 cents, the books say more" },
	]);
	expect(await findings(`dp_${disputed.paymentId}`)).toEqual([
		{ kind: "dispute", reason: "Stripe knows of no such dispute" },
	]);
	stripe.held.disputes.push(dispute(disputed, "needs_response", 4_000));
	await clear();
	expect(await findings(`dp_${disputed.paymentId}`)).toHaveLength(1);
});

/** Replaces the answers of Stripe's list of a payment's refunds. */
const listOfRefunds = (answer: (query: URLSearchParams) => Response) =>
	stripe.lie(({ url }) => {
		const { pathname, searchParams } = new URL(url);
		return pathname === "/v1/refunds" && searchParams.has("payment_intent") ? answer(searchParams) : undefined;
	});

test("the daily comparison counts a refund listed twice once and ends an endless list", async () => {
	const at = await paid("200");
	const other = await paid("200");
	const [first, second] = [refund(at, 3_000), refund(at, 1_000)];
	stripe.held.refunds.push(first, second);
	await send("charge.refunded", charge(at, 3_000));
	let pages = 0;
	listOfRefunds(() => {
		pages += 1;
		return Response.json({ object: "list", data: [first, second, refund(other, 500)], has_more: pages < 50, url: "" });
	});
	await clear();
	expect(await balance(at.customer)).toBe(160e9);
	pages = Number.NEGATIVE_INFINITY;
	await clear();
	stripe.lie();
	expect(await balance(at.customer)).toBe(160e9);
	expect(await balance(other.customer)).toBe(200e9);
});

test("the daily comparison reports a refund of an unknown payment and continues", async () => {
	const at = await paid();
	await send("charge.refunded", charge(at, 4_000));
	const { page } = await atThePage();
	await service.db.sql`update stripe_checkout set created_at = now() - interval '26 hours' where id = ${page.id}`;
	stripe.held["checkout/sessions"].push({ ...sessionOf({ page, paymentId: "pi_none" }), status: "expired" });
	const error = { type: "invalid_request_error", code: "resource_missing", message: "No such payment_intent" };
	listOfRefunds(() => Response.json({ error }, { status: 404 }));
	expect(await clear()).not.toBeNull();
	stripe.lie();
	expect((await findings(at.paymentId)).map(({ kind }) => kind)).toEqual(["refund"]);
	expect(await stateOf(page.topUpId)).toBe("rejected");
});

test("the daily comparison rejects a top-up only if its payment page has expired", async () => {
	const [over, open, paying] = [await atThePage(), await atThePage(), await atThePage()];
	const here = (at: OpenCheckout, status: string) =>
		stripe.held["checkout/sessions"].push(sessionOf(at, { status, payment_status: "unpaid", payment_intent: null }));
	here(over, "expired");
	here(open, "open");
	here(paying, "complete");
	await clear();
	expect(await stateOf(over.page.topUpId)).toBe("pending");
	await service.db.sql`update stripe_checkout set created_at = now() - interval '26 hours'`;
	expect(await clear()).toMatchObject({ taken: 1 });
	const states = [over, open, paying].map(({ page }) => stateOf(page.topUpId));
	expect(await Promise.all(states)).toEqual(["rejected", "pending", "pending"]);
});

test("the daily comparison reopens a finding that recurs unless a person closed it", async () => {
	const at = await paid("200");
	await send("charge.refunded", charge(at, 5_000));
	const failed = (count: number) => Array.from({ length: count }, () => refund(at, 5_000, { status: "failed" }));
	const found = [{ kind: "refund", reason: "Stripe refunded 0 cents, the books say more" }];
	for (const differs of [true, false, true]) {
		stripe.held.refunds.splice(0, 9, ...failed(1), ...(differs ? [] : [refund(at, 5_000)]));
		await clear();
		expect(await findings(at.paymentId)).toEqual(differs ? found : []);
	}
	await service.db.sql`update stripe_finding set resolved_at = now(), resolved_by = 'usr_op', resolution = 'by hand'`;
	await clear();
	expect(await findings(at.paymentId)).toEqual([]);
});

test("the daily comparison runs once a day on one console, and again after a failure", async () => {
	const at = await paidThere();
	stripe.fail(true);
	try {
		await expect(consoleOf().clear()).rejects.toThrow();
	} finally {
		stripe.fail(false);
	}
	const outcomes = await Promise.all(Array.from({ length: 5 }, () => consoleOf().clear()));
	expect(outcomes.filter((outcome) => outcome !== null)).toHaveLength(1);
	expect(await consoleOf().clear()).toBeNull();
	expect(await balance(at.customer)).toBe(100e9);
	await service.db.sql`update stripe_clearing set started_at = clock_timestamp() - interval '2 hours'`;
	expect(await consoleOf().clear()).toBeNull();
	await service.db
		.sql`update stripe_clearing set finished_at = null, started_at = clock_timestamp() - interval '50 minutes'`;
	expect(await consoleOf().clear()).toBeNull();
	await service.db.sql`update stripe_clearing set started_at = clock_timestamp() - interval '61 minutes'`;
	expect(await consoleOf().clear()).not.toBeNull();
}, 30_000);

test("the daily comparison records the fee of a credited payment once, in USD only", async () => {
	const [at, other, foreign] = [await paid(), await atThePage(), await paid()];
	const fee = ({ paymentId }: OpenCheckout, cents: number, currency = "usd") => ({
		...{ id: `txn_${crypto.randomUUID()}`, object: "balance_transaction", type: "charge", fee: cents, currency },
		source: { id: `ch_${paymentId}`, object: "charge", payment_intent: paymentId },
	});
	const fees = async () => {
		await clear();
		const ids = [at, other, foreign].map(({ paymentId }) => paymentId);
		const rows = await service.db.sql`select id, fee_cents::int as cents from stripe_payment where fee_at is not null`;
		return ids.map((id) => rows.find((row) => row.id === id)?.cents ?? null);
	};
	stripe.held.balance_transactions.push(fee(at, 320), fee(other, 99), fee(foreign, 300, "eur"));
	expect(await fees()).toEqual([320, null, null]);
	stripe.held.balance_transactions[0] = fee(at, 999);
	expect(await fees()).toEqual([320, null, null]);
});

test("the daily comparison continues if its Stripe key may not read fees", async () => {
	stripe.lie((request) =>
		request.url.includes("balance_transactions")
			? Response.json({ error: { type: "invalid_request_error", message: "no permission" } }, { status: 403 })
			: undefined,
	);
	const at = await paidThere();
	expect(await clear()).toMatchObject({ taken: 1 });
	expect(await balance(at.customer)).toBe(100e9);
});
