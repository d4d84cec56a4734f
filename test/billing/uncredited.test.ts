import { afterEach, expect, test } from "bun:test";
import { collectRefunds, creditHeldPayments } from "../../src/billing/stripe-events.ts";
import { countOpenFindings } from "../../src/ops/payment-findings.ts";
import { operator } from "../console/person.ts";
import { waitFor } from "../support/wait.ts";
import { sessionOf, withPayers } from "./paid.ts";

const { atThePage, balance, findings, send, service, stateOf } = await withPayers();
const MOST = Number.MAX_SAFE_INTEGER;

afterEach(async () => {
	await service.db.sql`update stripe_finding set resolved_at = now() where resolved_at is null`;
});

async function adjust(accountId: string, nano: number): Promise<void> {
	await service.db
		.sql`select ledger_book(${crypto.randomUUID()}, ${accountId}, 'adjustment', ${nano}::bigint, ${crypto.randomUUID()}, 'test', '', false)`;
}

/** Inserts usage of an instance that ended last year. */
async function spend(accountId: string, nano: number): Promise<void> {
	const instance = `old_${crypto.randomUUID()}`;
	await service.db.sql`
		insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed, reserved_nano_usd,
			charged_nano_usd, basis, ending, status, admitted_at)
		values (gen_random_uuid(), ${accountId}, ${instance}, ${instance}, 1, 'test-model', 'card', 'chat', false, ${nano}::bigint, ${nano}::bigint,
			'reported', 'complete', 200, now() - interval '1 year')`;
	for (const budget of [accountId, instance]) {
		await service.db.sql`
			insert into lease (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd, state)
			values (${budget}, ${instance}, 1, ${nano}::bigint, ${nano}::bigint, 'closed')`;
		await service.db.sql`
			insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd)
			values (gen_random_uuid(), ${budget}, ${instance}, 1, 'grant', ${nano}::bigint)`;
	}
	await service.db.sql`update budget set drawn_nano_usd = drawn_nano_usd + ${nano}::bigint where id = ${accountId}`;
	await service.db
		.sql`insert into budget (id, kind, account_id, limit_nano_usd, drawn_nano_usd) values (${instance}, 'key', ${accountId}, null, ${nano}::bigint)`;
}

const alarms = () => countOpenFindings(service.db.statements);

test("an account that has paid and spent very large sums can still top up", async () => {
	const at = await atThePage("250");
	const { accountId } = at.customer;
	for (let i = 0; i < 3; i++) {
		await adjust(accountId, MOST);
		await spend(accountId, MOST);
	}
	expect(await send("checkout.session.completed", sessionOf(at))).toBe(200);
	expect(await balance(at.customer)).toBe(250e9);
	expect(await stateOf(at.page.topUpId)).toBe("confirmed");
	const { secret } = (await at.customer.send("POST", "/api/console/keys", { name: "k" })).body;
	const body = { model: "test-model", messages: [{ role: "user", content: "hi" }], max_tokens: 5 };
	expect((await service.post("/v1/chat/completions", secret, body)).status).toBe(200);
	await service.settled();
	const credits = await service.get("/v1/credits", secret);
	expect(await credits.json()).toMatchObject({ data: { balance_usd: "249.999992" } });
	for (const page of ["credit", "keys", "overview", "usage"])
		expect({ page, status: (await at.customer.get(`/api/console/${page}`)).status }).toEqual({ page, status: 200 });
});

test("a payment above the maximum balance raises an alarm and is credited later", async () => {
	const at = await atThePage("100");
	const { accountId } = at.customer;
	await adjust(accountId, MOST - 99e9);
	const event = sessionOf(at);
	expect(await send("checkout.session.completed", event)).toBe(200);
	expect(await stateOf(at.page.topUpId)).toBe("pending");
	expect(await findings(at.paymentId)).toEqual([
		{ kind: "uncredited", reason: "paid, not credited: the account would hold more credit than can be counted" },
	]);
	expect(await alarms()).toBe(1);
	await adjust(accountId, -2e9);
	await waitFor(async () => (await stateOf(at.page.topUpId)) === "confirmed", "the payment to be credited", 15_000);
	expect(await balance(at.customer)).toBe(MOST - 1e9);
	expect(await findings(at.paymentId)).toEqual([]);
	expect(await send("checkout.session.async_payment_succeeded", event)).toBe(200);
	expect(await balance(at.customer)).toBe(MOST - 1e9);
}, 20_000);

test("payments that a full account cannot take delay no credit of other accounts", async () => {
	const full = await atThePage("100");
	await adjust(full.customer.accountId, MOST - 99e9);
	await send("checkout.session.completed", sessionOf(full));
	// Inserts as many older payments as one check can handle.
	for (const [table, ids] of [
		["top_up", { id: "top_", reference: "r_" }],
		["stripe_payment", { id: "pi_full_", top_up_id: "top_" }],
		["stripe_finding", { id: "paid:pi_full_", top_up_id: "top_" }],
	] as const) {
		const former = {
			top_up: full.page.topUpId,
			stripe_payment: full.paymentId,
			stripe_finding: `paid:${full.paymentId}`,
		};
		await service.db.sql`
			insert into ${service.db.sql(table)} select f.* from generate_series(1, 100) n, lateral (
				select (jsonb_populate_record(s, (select jsonb_object_agg(i.key, i.value || n) from jsonb_each_text(${JSON.stringify(ids)}::text::jsonb) i))).*
				from ${service.db.sql(table)} s where s.id = ${former[table]}) f`;
	}
	const at = await atThePage("100");
	await adjust(at.customer.accountId, MOST - 99e9);
	await send("checkout.session.completed", sessionOf(at));
	await adjust(at.customer.accountId, -2e9);
	const isCredited = async () => (await stateOf(at.page.topUpId)) === "confirmed";
	for (let looks = 0; looks < 20 && !(await isCredited()); looks += 1) await creditHeldPayments(service.db.tx);
	expect(await isCredited()).toBe(true);
}, 30_000);

test("a payment whose event always fails to apply raises an alarm after a minute", async () => {
	const at = await atThePage();
	await service.db.sql`alter table stripe_payment add constraint test_broken check (false) not valid`;
	try {
		expect(await send("checkout.session.completed", sessionOf(at))).toBe(500);
	} finally {
		await service.db.sql`alter table stripe_payment drop constraint test_broken`;
	}
	expect(await findings(at.paymentId)).toEqual([{ kind: "uncredited", reason: "received" }]);
	expect(await alarms()).toBe(0);
	await service.db
		.sql`update stripe_finding set found_at = found_at - interval '2 minutes' where id = ${`paid:${at.paymentId}`}`;
	expect(await alarms()).toBe(1);
	expect(await send("checkout.session.completed", sessionOf(at))).toBe(200);
	expect(await findings(at.paymentId)).toEqual([]);
	expect(await alarms()).toBe(0);
});

test("a payment of a wrong amount or currency raises alarms until fully refunded", async () => {
	const at = await atThePage("100");
	expect(await send("checkout.session.completed", sessionOf(at, { amount_total: 9_999 }))).toBe(200);
	expect(await findings(at.paymentId)).toEqual([{ kind: "uncredited", reason: "refused: another amount" }]);
	const charge = { id: "ch_1", object: "charge", payment_intent: at.paymentId, currency: "usd" };
	expect(await send("charge.refunded", { ...charge, amount_refunded: 5_000 })).toBe(200);
	expect(await findings(at.paymentId)).toHaveLength(1);
	expect(await send("charge.refunded", { ...charge, amount_refunded: 9_999 })).toBe(200);
	expect(await findings(at.paymentId)).toEqual([]);
	expect(await stateOf(at.page.topUpId)).toBe("rejected");
	expect(await balance(at.customer)).toBe(0);
});

test("a dispute or refund of a payment that was never credited takes no credit", async () => {
	const at = await atThePage("100");
	await adjust(at.customer.accountId, MOST - 99e9);
	await send("checkout.session.completed", sessionOf(at));
	const charge = { id: "ch_2", object: "charge", payment_intent: at.paymentId, currency: "usd" };
	expect(await send("charge.refunded", { ...charge, amount_refunded: 4_000 })).toBe(200);
	expect(await balance(at.customer)).toBe(MOST - 99e9);
	await adjust(at.customer.accountId, -50e9);
	await creditHeldPayments(service.db.tx);
	expect(await stateOf(at.page.topUpId)).toBe("confirmed");
	expect(await balance(at.customer)).toBe(MOST - 99e9 - 50e9 + 60e9);
});

test("a won dispute's credit waits while it would exceed the maximum balance", async () => {
	const at = await atThePage("100");
	const { accountId } = at.customer;
	const dispute = { id: "dp_won", object: "dispute", payment_intent: at.paymentId, currency: "usd", amount: 10_000 };
	const accountState = async () =>
		(await service.db.sql`select state from account where id = ${accountId}`).map(({ state }) => state);
	await send("checkout.session.completed", sessionOf(at));
	await send("charge.dispute.created", { ...dispute, status: "needs_response" });
	await adjust(accountId, MOST - 40e9);
	expect(await send("charge.dispute.closed", { ...dispute, status: "won" })).toBe(200);
	expect([await balance(at.customer), await accountState()]).toEqual([MOST - 40e9, ["active"]]);
	expect(await findings("dp_won")).toEqual([
		{ kind: "dispute", reason: "won, not given back: the account would hold more credit than can be counted" },
	]);
	expect(await alarms()).toBe(1);
	await collectRefunds(service.db.tx);
	expect(await balance(at.customer)).toBe(MOST - 40e9);
	await spend(accountId, 70e9);
	await collectRefunds(service.db.tx);
	expect([await balance(at.customer), await stateOf(at.page.topUpId)]).toEqual([MOST - 10e9, "confirmed"]);
	expect(await findings("dp_won")).toEqual([]);
	expect(await send("charge.dispute.closed", { ...dispute, status: "won" })).toBe(200);
	expect(await balance(at.customer)).toBe(MOST - 10e9);
});

test("a payment of another product at the same Stripe account raises no alarm", async () => {
	const at = await atThePage();
	const other = sessionOf(at, { id: "cs_other_shop", client_reference_id: "order-17" });
	expect(await send("checkout.session.completed", other)).toBe(200);
	expect(await findings(at.paymentId)).toEqual([]);
});

test("an operator sees payments without credit and closes them with a reason", async () => {
	const at = await atThePage();
	await send("checkout.session.completed", sessionOf(at, { currency: "eur" }));
	const boss = await operator(service);
	const closing = { id: `paid:${at.paymentId}`, reason: "refunded by hand" };
	expect((await at.customer.send("POST", "/api/console/operator/payment-findings/close", closing)).status).toBe(403);
	const summary = (await boss.get("/api/console/operator/summary")).body;
	expect(summary.paymentFindings).toMatchObject([
		{ id: closing.id, kind: "uncredited", reason: "refused: another currency", currency: "eur", amountCents: 10_000 },
	]);
	expect((await boss.send("POST", "/api/console/operator/payment-findings/close", closing)).status).toBe(200);
	expect((await boss.send("POST", "/api/console/operator/payment-findings/close", closing)).status).toBe(200);
	expect((await boss.get("/api/console/operator/summary")).body.paymentFindings).toEqual([]);
	const audited = await service.db.sql`select detail from audit_event where action = 'payment.close'`;
	expect(audited.map((row) => row.detail)).toEqual([{ reason: "refunded by hand" }]);
	await send("checkout.session.completed", sessionOf(at, { currency: "eur" }));
	expect(await findings(at.paymentId)).toEqual([]);
});
