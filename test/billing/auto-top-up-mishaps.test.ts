import { expect, test } from "bun:test";
import { readAutoAttempts, scheduleAutoTopUpChecks } from "../../src/billing/auto-top-ups.ts";
import { collectRefunds } from "../../src/billing/stripe-events.ts";
import { createTopUp } from "../../src/billing/top-ups.ts";
import { LONG } from "../support/long-form.ts";
import { openTransaction } from "../support/open-transaction.ts";
import { usd, withAutomatic } from "./automatic.ts";
import type { Mishap } from "./stripe-cards.ts";

const { attempts, balance, charges, db, pass, payer, setting, spend, stripe, tell, turn } = await withAutomatic();

/** Starts a payment whose outcome the bank has not decided. */
async function undecided() {
	const ann = await payer("processing");
	await spend(ann, 90);
	await pass(1);
	const [attempt] = await attempts(ann);
	const intent = stripe.cards.intents.find(({ id }) => id === attempt?.payment_id);
	if (attempt === undefined || intent === undefined) throw new Error("nothing was sent");
	return { ann, attempt, intent };
}

const MISHAPS: Exclude<Mishap, undefined | "hang">[] = ["error", "kept error", "lost", "busy"];
for (const how of MISHAPS) {
	test(`a wrong answer of Stripe (${how}) to any call causes at most one charge`, async () => {
		for (const call of ["payment_intents", "confirm", "GET payment_intents"]) {
			const ann = await payer();
			await spend(ann, 90);
			stripe.cards.upset((name) => (name === call ? how : undefined));
			await pass(2);
			expect(await attempts(ann)).toHaveLength(1);
			stripe.cards.upset();
			await pass(4);
			expect({ call, charges: charges(ann), balance: await balance(ann) }).toEqual({ call, charges: 1, balance: 110 });
			// The request was repeated with the same idempotency key, so Stripe has only one payment.
			const made = stripe.cards.intents.filter(({ customer }) => customer === ann.card.customer);
			expect({ call, made: made.length }).toEqual({ call, made: 1 });
		}
		const ben = await payer("declined");
		await spend(ben, 90);
		stripe.cards.upset((name) => (name === "cancel" ? how : undefined));
		await pass(2);
		stripe.cards.upset();
		await pass(2);
		expect(await attempts(ben)).toMatchObject([{ state: "declined", reason: "declined", top_up_state: "rejected" }]);
		expect(await setting(ben)).toMatchObject({ state: "stopped" });
	});
}

test("early, late or repeated Stripe events credit a payment once; forged ones do not", async () => {
	const { ann, intent } = await undecided();
	const paid = { ...intent, status: "succeeded", amount_received: 10_000 };
	const metadata = { ...intent.metadata };
	for (const lie of [
		{ ...paid, metadata: { ...metadata, attempt: "att_of_nobody" } },
		{ ...paid, metadata: { ...metadata, top_up: "top_of_nobody" } },
		{ ...paid, status: "processing" },
		{ ...paid, metadata: {} },
	]) {
		expect(await tell("payment_intent.succeeded", lie)).toBe(200);
		expect(await balance(ann)).toBe(10);
	}
	expect(await attempts(ann)).toMatchObject([{ state: "sent" }]);
	await tell("payment_intent.payment_failed", { ...intent, status: "requires_payment_method" });
	expect(await attempts(ann)).toMatchObject([{ state: "sent" }]);
	intent.status = "succeeded";
	intent.amount_received = 10_000;
	await Promise.all([tell("payment_intent.succeeded", paid), tell("payment_intent.succeeded", paid), turn(), turn()]);
	await tell("payment_intent.payment_failed", { ...intent, status: "requires_payment_method" });
	await tell("payment_intent.canceled", { ...intent, status: "canceled" });
	await pass(2);
	expect(await balance(ann)).toBe(110);
	expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
	await db.sql`update stripe_finding set resolved_at = now() where resolved_at is null`;
});

test("a charge of a wrong amount raises an alarm, gives no credit and stops the card", async () => {
	for (const [amount_received, currency] of [
		[9_999, "usd"],
		[1_000_000, "usd"],
		[10_000, "eur"],
		[-10_000, "usd"],
	] as const) {
		const ann = await payer("processing");
		await spend(ann, 90);
		await pass(1);
		const [attempt] = await attempts(ann);
		const intent = stripe.cards.intents.find(({ id }) => id === attempt?.payment_id);
		const paid = { ...intent, status: "succeeded", amount_received, currency };
		expect(await tell("payment_intent.succeeded", paid)).toBe(200);
		await pass(2);
		expect(await balance(ann)).toBe(10);
		expect(await setting(ann)).toMatchObject({ state: "stopped", reason: "uncredited" });
		const found = await db.sql`select 1 from stripe_finding where id = ${`paid:${intent?.id}`} and resolved_at is null`;
		expect(found).toHaveLength(1);
		expect(await attempts(ann)).toHaveLength(1);
	}
	await db.sql`update stripe_finding set resolved_at = now() where resolved_at is null`;
});

test("a declined, expired or removed card is charged only after it is saved again", async () => {
	for (const [nature, reason] of [
		["declined", "declined"],
		["funds", "funds"],
		["gone", "card_gone"],
	] as const) {
		const ann = await payer(nature === "gone" ? "good" : nature);
		const customer = ann.card.customer;
		if (nature === "gone") ann.card.customer = null;
		await spend(ann, 90);
		await pass(3);
		expect(await attempts(ann)).toMatchObject([{ state: "declined", reason, top_up_state: "rejected" }]);
		expect(await setting(ann)).toMatchObject({ state: "stopped", reason, tell: reason });
		await spend(ann, 1);
		await pass(2);
		expect(await attempts(ann)).toHaveLength(1);
		ann.card.nature = "good";
		ann.card.customer = customer;
		await ann.save();
		expect(await setting(ann)).toMatchObject({ state: "on", reason: null, tell: null });
		await pass(2);
		expect(charges(ann)).toBe(1);
		expect(await balance(ann)).toBe(109);
	}
});

test("a refund or dispute of a payment stops automatic charges of its card", async () => {
	for (const what of ["refund", "dispute"] as const) {
		const ann = await payer();
		await spend(ann, 90);
		await pass(2);
		const [attempt] = await attempts(ann);
		const payment_intent = attempt?.payment_id;
		const refund = { id: "ch_1", object: "charge", payment_intent, amount_refunded: 10_000, currency: "usd" };
		const dispute = { id: `dp_${payment_intent}`, object: "dispute", payment_intent, amount: 10_000, currency: "usd" };
		if (what === "refund") await tell("charge.refunded", refund);
		else await tell("charge.dispute.created", { ...dispute, status: "needs_response" });
		await pass(3);
		expect(await balance(ann)).toBe(10);
		expect(charges(ann)).toBe(1);
		expect(await setting(ann)).toMatchObject({ state: "stopped", reason: what === "refund" ? "refunded" : "disputed" });
		expect(await attempts(ann)).toMatchObject([
			{ state: "succeeded", top_up_state: what === "refund" ? "refunded" : "disputed" },
		]);
	}
});

test("a refund reported before its payment also stops automatic charges of the card", async () => {
	for (const what of ["refunded", "disputed"] as const)
		for (const when of ["before", "at once"] as const) {
			const ann = await payer();
			const payment_intent = `pi_${ann.accountId}_${when}`;
			const { id: topUp } = await createTopUp(db.statements, {
				...{ accountId: ann.accountId, amountNanoUsd: usd(100), method: "card", reference: payment_intent },
			});
			const page = `cs_${topUp}`;
			await db.sql`insert into stripe_checkout (id, top_up_id) values (${page}, ${topUp})`;
			const about = { payment_intent, currency: "usd" };
			const back = () =>
				what === "refunded"
					? tell("charge.refunded", { id: "ch_1", object: "charge", ...about, amount_refunded: 10_000 })
					: tell("charge.dispute.created", {
							...{ id: `dp_${payment_intent}`, object: "dispute", ...about, amount: 10_000, status: "needs_response" },
						});
			const paid = () =>
				tell("checkout.session.completed", {
					...{ id: page, object: "checkout.session", client_reference_id: topUp, ...about },
					...{ payment_status: "paid", status: "complete", amount_total: 10_000 },
				});
			if (when === "before") await back();
			expect(await Promise.all(when === "before" ? [paid()] : [paid(), back()])).not.toContain(500);
			expect([what, when, await setting(ann)]).toMatchObject([what, when, { state: "stopped", reason: what }]);
			// Two concurrent transactions each left the refund to the other; the next check books it.
			await collectRefunds(db.tx);
			expect(await balance(ann)).toBe(100);
		}
});

test("an automatic payment not sent to Stripe within an hour is given up", async () => {
	for (const isMade of [false, true]) {
		const ann = await payer();
		await spend(ann, 90);
		stripe.cards.upset((name) => (name === (isMade ? "confirm" : "payment_intents") ? "error" : undefined));
		await pass(2);
		stripe.cards.upset();
		await db.sql`update auto_top_up_attempt set begun_at = now() - interval '61 minutes' where account_id = ${ann.accountId}`;
		const made = stripe.cards.intents.length;
		await pass(1);
		expect(stripe.cards.intents.length).toBe(made);
		expect(await attempts(ann)).toMatchObject([{ state: "ended", reason: "unanswered" }]);
		expect(charges(ann)).toBe(0);
		await pass(2);
		expect(await attempts(ann)).toMatchObject([{ state: "ended" }, { state: "succeeded" }]);
		expect(charges(ann)).toBe(1);
		expect(await balance(ann)).toBe(110);
	}
});

test("a payment without a result raises an alarm and one mail, and can still succeed", async () => {
	for (const outcome of ["succeeded", "canceled", ...(LONG ? (["requires_payment_method"] as const) : [])] as const) {
		const { ann, attempt, intent } = await undecided();
		const open = () =>
			db.sql`select kind from stripe_finding where id = ${`open:${attempt.id}`} and resolved_at is null`;
		const age = (hours: number) =>
			db.sql`update auto_top_up_attempt set begun_at = now() - ${hours} * interval '1 hour' where id = ${attempt.id}`;
		await age(47);
		await pass(2);
		expect([await open(), (await setting(ann))?.tell]).toEqual([[], null] as never);
		await age(49);
		await Promise.all([pass(2), pass(2)]);
		expect([...(await open())]).toEqual([{ kind: "undecided" }] as never);
		expect(await setting(ann)).toEqual({ state: "on", reason: null, tell: "undecided" });
		await db.sql`update auto_top_up set tell = null where account_id = ${ann.accountId}`;
		expect((await readAutoAttempts(db.statements, ann.accountId)).attempts).toMatchObject([
			{ state: "running", reason: "undecided" },
		]);
		await spend(ann, 5);
		await pass(3);
		expect([(await attempts(ann)).length, charges(ann), (await setting(ann))?.tell]).toEqual([1, 0, null]);
		intent.status = outcome;
		if (outcome === "succeeded") {
			intent.amount_received = intent.amount;
			expect(await tell("payment_intent.succeeded", { ...intent })).toBe(200);
		} else intent.last_payment_error = { type: "card_error", code: "card_declined", decline_code: "do_not_honor" };
		await pass(2);
		expect([...(await open())]).toEqual([]);
		// Simulates a console that read the payment as undecided before it ended, and reports that now.
		await db.sql`update stripe_finding set id = id || ${outcome} where id = ${`open:${attempt.id}`}`;
		await db.sql`select auto_top_up_undecided(${attempt.id}, 'late')`;
		expect([...(await open())]).toEqual([]);
		const isPaid = outcome === "succeeded";
		expect(await balance(ann)).toBe(isPaid ? 105 : 5);
		expect(await setting(ann)).toMatchObject(isPaid ? { state: "on" } : { state: "stopped", reason: "declined" });
		expect((await readAutoAttempts(db.statements, ann.accountId)).attempts).toMatchObject([
			{ state: isPaid ? "succeeded" : "declined", reason: isPaid ? null : "declined" },
		]);
	}
});

test("a database lock on one account delays no other account's automatic top-up", async () => {
	const held = await payer();
	const other = await payer();
	await spend(held, 60);
	await scheduleAutoTopUpChecks(db.statements);
	await spend(other, 60);
	const release = await openTransaction(
		db.sql,
		(tx) => tx`select 1 from auto_top_up where account_id = ${held.accountId} for update`,
	);
	await turn();
	expect((await attempts(other)).length).toBe(1);
	expect((await attempts(held)).length).toBe(0);
	await release();
	await turn();
	expect((await attempts(held)).length).toBe(1);
}, 60_000);

test("a Stripe call that changed nothing is repeated later, not immediately", async () => {
	for (const [nature, call] of [
		["good", "confirm"],
		["declined", "cancel"],
	] as const) {
		const ann = await payer(nature);
		await spend(ann, 90);
		let asked = 0;
		stripe.lie(({ url }) => {
			const id = new RegExp(`/payment_intents/([^/]+)/${call}$`).exec(url)?.[1];
			if (id === undefined) return undefined;
			asked += 1;
			if (asked > 20) return undefined;
			return Response.json(stripe.cards.intents.find((one) => one.id === id));
		});
		await pass(1);
		expect([call, asked]).toEqual([call, 1]);
		expect(await attempts(ann)).toMatchObject([{ state: "unknown" }]);
		stripe.lie();
		await pass(2);
		expect(await attempts(ann)).toMatchObject([{ state: nature === "good" ? "succeeded" : "declined" }]);
		expect(charges(ann)).toBe(nature === "good" ? 1 : 0);
	}
});
